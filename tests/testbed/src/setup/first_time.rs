//! Announces steps that a command does only once on a machine, with an estimate of their time.
//!
//! The times were measured on one core of the machine that `docs/qemu.md` names, and are divided
//! by the number of cores. They are a rough estimate only.

use super::Need;
use crate::qemu_build::{self, Target};
use crate::{paths, process};
use anyhow::Result;
use std::thread::available_parallelism;

/// What takes less is not worth a word.
const WORTH_A_WORD: u64 = 30;

/// Something to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    what: &'static str,
    /// Seconds that no second core makes fewer.
    alone: u64,
    /// Seconds of one core that are divided among all.
    shared: u64,
}

impl Step {
    fn seconds(self, cores: u64) -> u64 {
        self.alone + self.shared / cores.max(1)
    }
}

/// Whatever `missing` has, and all packages.
const PACKAGES: Step = Step {
    what: "packages of the system, by apt-get",
    alone: 20,
    shared: 0,
};
/// One program of QEMU.
const QEMU: Step = Step {
    what: "QEMU with the card in it, from its source",
    alone: 20,
    shared: 160,
};
/// What the second one takes beside the first.
const SECOND_QEMU: Step = Step {
    what: "QEMU for a PC, of the same source",
    alone: 0,
    shared: 60,
};
const MODEL: Step = Step {
    what: "the hardware model, a library that QEMU loads",
    alone: 5,
    shared: 10,
};
const FIRMWARE: Step = Step {
    what: "the firmware and the boot code",
    alone: 25,
    shared: 10,
};
const GUEST: Step = Step {
    what: "the guest: Debian's kernel, our programs",
    alone: 40,
    shared: 60,
};

/// Says what is to be done for `needs` before the command proper, if that takes long;
/// `packages` says whether any is missing.
///
/// # Errors
/// As of [`qemu_build::missing`].
pub fn announce(needs: &[Need], packages: bool) -> Result<()> {
    let cores = available_parallelism().map_or(1, |cores| cores.get() as u64);
    let steps = steps(needs, packages)?;
    for line in lines(&steps, cores) {
        println!("{line}");
    }
    Ok(())
}

/// What is to be done, in its order.
fn steps(needs: &[Need], packages: bool) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut add = |step, when: bool| steps.extend(when.then_some(step));
    add(PACKAGES, packages && process::exists("apt-get"));
    let mut targets = Vec::new();
    if needs.contains(&Need::Qemu) {
        targets.push(Target::Mips);
    }
    if needs.contains(&Need::Guest) {
        targets.push(Target::X86_64);
    }
    let missing = qemu_build::missing(&targets)?;
    add(QEMU, !missing.is_empty());
    add(SECOND_QEMU, missing.len() > 1);
    let target = paths::target();
    let model = target.join("release/libtigon2_qemu.so");
    add(MODEL, needs.contains(&Need::Qemu) && !model.is_file());
    let firmware = target.join("firmware").is_dir();
    add(FIRMWARE, needs.contains(&Need::Firmware) && !firmware);
    let guest = paths::cache().join("guest").is_dir();
    add(GUEST, needs.contains(&Need::Guest) && !guest);
    Ok(steps)
}

/// The words for it: none if it is done in no time.
fn lines(steps: &[Step], cores: u64) -> Vec<String> {
    let total: u64 = steps.iter().map(|step| step.seconds(cores)).sum();
    if total < WORTH_A_WORD {
        return Vec::new();
    }
    let core = if cores == 1 { "core" } else { "cores" };
    let head = format!(
        "once on this machine, about {} on {cores} {core}:",
        time(total)
    );
    let step = |(number, step): (usize, &Step)| {
        format!("  {number}. {}, {}", step.what, time(step.seconds(cores)))
    };
    std::iter::once(head)
        .chain((1..).zip(steps).map(step))
        .collect()
}

/// To a precision that the estimate has.
fn time(seconds: u64) -> String {
    match seconds {
        0..90 => format!("{} s", seconds.div_ceil(5) * 5),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_told_step_by_step() {
        let lines = lines(&[PACKAGES, QEMU, FIRMWARE], 2);
        assert_eq!(
            lines,
            [
                "once on this machine, about 3 min on 2 cores:",
                "  1. packages of the system, by apt-get, 20 s",
                "  2. QEMU with the card in it, from its source, 2 min",
                "  3. the firmware and the boot code, 30 s",
            ]
        );
    }

    #[test]
    fn what_is_done_in_no_time_is_not_told() {
        assert_eq!(lines(&[], 2), [""; 0]);
        assert_eq!(lines(&[MODEL], 2), [""; 0]);
        assert!(!lines(&[QEMU], 8).is_empty());
    }
}
