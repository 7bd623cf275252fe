//! The QEMU options for the PC that a guest runs on.

use super::{GuestOptions, GuestTools};
use crate::guest_device::card_device;
use anyhow::Result;
use guest_agent::PORT;
use std::path::Path;

/// A serial console; a panic ends QEMU at once; nothing that only slows an
/// emulated CPU down.
///
/// No check of the timer: the kernel spins for ten ticks of its own reckoning and wants to
/// have been interrupted four times. On a busy computer the CPU's thread spins through them
/// before QEMU's main loop, which makes the ticks, has its turn: "IO-APIC + timer doesn't
/// work!".
const KERNEL_WORDS: &str = "console=ttyS0 panic=-1 oops=panic mitigations=off net.ifnames=0 \
    random.trust_cpu=on rcupdate.rcu_expedited=1 no_timer_check";

/// An instruction takes 2^1 ns by the guest's own clock, about as long as by TCG on an idle
/// computer.
const INSTRUCTION_SHIFT: u32 = 1;

/// Files and sockets of a guest, in its folder.
pub const CONSOLE: &str = "console";
/// The root file system with what is this guest's own.
pub const ROOT: &str = "root.cpio";
/// The agent's channel.
pub const AGENT: &str = "agent";

/// What emulates the guest's CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// QEMU's translator, everywhere the same.
    Tcg,
    /// This machine's own CPU.
    Kvm,
}

/// The words behind the program's name; `cards` are those of [`cards`].
pub fn words(
    tools: &GuestTools,
    options: &GuestOptions,
    accelerator: Accelerator,
    cards: &[String],
    folder: &Path,
) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut words: Vec<String> = Vec::new();
    let mut add = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
    let memory = options.memory_mb;
    let intremap = if options.iommu {
        ",kernel-irqchip=split"
    } else {
        ""
    };
    let machine = format!(
        "q35,memory-backend=memory,usb=off,smbus=off,sata=off,vmport=off,hpet=off{intremap}"
    );
    let backend = format!("memory-backend-memfd,id=memory,share=on,size={memory}M");
    add(&[
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
    ]);
    add(&[
        "-M",
        &machine,
        "-object",
        &backend,
        "-m",
        &format!("{memory}M"),
    ]);
    match accelerator {
        // As old as the distribution's packages allow, and a source of randomness.
        Accelerator::Tcg => add(&["-accel", "tcg", "-cpu", "qemu64,+rdrand"]),
        Accelerator::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
    }
    if options.own_clock && accelerator == Accelerator::Tcg {
        add(&["-icount", &format!("shift={INSTRUCTION_SHIFT}")]);
    }
    add(&["-kernel", &tools.kernel.display().to_string()]);
    add(&["-initrd", &path(ROOT), "-append", &kernel_words(options)]);
    let log = path(CONSOLE);
    if options.interactive {
        let console = format!("stdio,id=console,mux=on,signal=off,logfile={log}");
        add(&[
            "-chardev",
            &console,
            "-mon",
            "chardev=console,mode=readline",
        ]);
    } else {
        add(&["-chardev", &format!("file,id=console,path={log}")]);
    }
    add(&["-serial", "chardev:console"]);
    add(&[
        "-chardev",
        &format!("socket,id=agent,path={},server=on,wait=off", path(AGENT)),
    ]);
    add(&["-device", "virtio-serial-pci,id=agents"]);
    add(&[
        "-device",
        &format!("virtserialport,bus=agents.0,nr=1,chardev=agent,name={PORT}"),
    ]);
    add(&["-device", "virtio-rng-pci"]);
    if options.iommu {
        add(&["-device", "intel-iommu,intremap=off,caching-mode=on"]);
    }
    words.extend_from_slice(cards);
    words.extend(options.devices.iter().cloned());
    words
}

fn kernel_words(options: &GuestOptions) -> String {
    let mut words = KERNEL_WORDS.to_owned();
    if options.interactive {
        // The terminal is the user's: warnings only.
        words.push_str(" quiet loglevel=4");
    }
    if options.iommu {
        words.push_str(" intel_iommu=on");
    }
    words
}

/// The words that give the guest its cards.
///
/// # Errors
/// If this QEMU has no device for a card.
pub fn cards(tools: &GuestTools, options: &GuestOptions) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for (number, socket) in options.cards.iter().enumerate() {
        words.extend(card_device(&tools.qemu, &tools.client, socket, number)?);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn tools() -> GuestTools {
        GuestTools {
            qemu: "/qemu".into(),
            client: "/client.so".into(),
            kernel: "/vmlinux".into(),
            root: "/root.cpio".into(),
        }
    }

    fn shown(options: &GuestOptions) -> String {
        let (folder, cards) = (PathBuf::from("/folder"), ["-device", "the-card"]);
        let cards = cards.map(str::to_owned);
        words(&tools(), options, Accelerator::Tcg, &cards, &folder).join(" ")
    }

    #[test]
    fn cards_come_before_what_the_user_adds() {
        let options = GuestOptions {
            devices: vec!["-device".into(), "e1000".into()],
            ..GuestOptions::default()
        };
        let words = shown(&options);
        assert!(words.ends_with("-device the-card -device e1000"), "{words}");
        assert!(
            words.contains("share=on"),
            "the card's DMA needs shared memory"
        );
        assert!(words.contains("-chardev file,id=console,path=/folder/console"));
    }

    /// The card's own address space is the IOMMU's only if that is there first.
    #[test]
    fn the_iommu_comes_before_the_cards() {
        let options = GuestOptions {
            iommu: true,
            ..GuestOptions::default()
        };
        let words = shown(&options);
        let at = |word: &str| {
            words
                .find(word)
                .unwrap_or_else(|| panic!("{word}: {words}"))
        };
        assert!(at("intel-iommu,") < at("the-card"));
        assert!(words.contains("intel_iommu=on"));
    }

    /// KVM's CPU executes instructions that nobody counts.
    #[test]
    fn a_clock_of_instructions_is_for_tcg() {
        let options = GuestOptions {
            own_clock: true,
            ..GuestOptions::default()
        };
        let with = |accelerator| {
            words(&tools(), &options, accelerator, &[], Path::new("/folder")).join(" ")
        };
        assert!(with(Accelerator::Tcg).contains("-icount shift=1"));
        assert!(!with(Accelerator::Kvm).contains("-icount"));
        assert!(!shown(&GuestOptions::default()).contains("-icount"));
    }

    #[test]
    fn an_interactive_console_is_the_terminal_and_is_written_down_too() {
        let options = GuestOptions {
            interactive: true,
            ..GuestOptions::default()
        };
        let words = shown(&options);
        assert!(words.contains("stdio,id=console,mux=on,signal=off,logfile=/folder/console"));
        assert!(words.contains(" quiet "), "{words}");
    }
}
