//! Processor time, of programs and of the whole computer.

use anyhow::{Context, Result};
use std::time::Duration;

/// Processor time of processes so far.
pub(super) fn cpu(processes: &[u32]) -> Result<Duration> {
    let mut ticks = 0;
    for process in processes {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The program's name may have spaces in its parentheses.
        let (_, rest) = text.rsplit_once(')').context("no process")?;
        let mut fields = rest.split_whitespace().skip(11);
        for _ in 0..2 {
            let field = fields.next().context("no processor time")?;
            ticks += field.parse::<u64>()?;
        }
    }
    Ok(Duration::from_millis(ticks * 10))
}

/// All processors' time without sleep so far, less that of this process and of others.
///
/// It is what the idle time leaves, which the kernel measures. The busy time in the same file is a
/// sample at each tick: a client that sleeps between two ticks is in it by luck.
pub(super) fn busy(but: &[u32]) -> Result<Duration> {
    let uptime = std::fs::read_to_string("/proc/uptime")?;
    let uptime: f64 = uptime
        .split_whitespace()
        .next()
        .context("no uptime")?
        .parse()?;
    let (processors, idle) = unused(&std::fs::read_to_string("/proc/stat")?)?;
    let all = uptime * processors as f64 - idle.as_secs_f64();
    let others = cpu(&[&[std::process::id()], but].concat())?;
    Ok(Duration::from_secs_f64(all.max(0.0)).saturating_sub(others))
}

/// The number of processors, and the time that they were idle, waited for a disk, or were another
/// machine's, by the text of `/proc/stat`.
fn unused(stat: &str) -> Result<(usize, Duration)> {
    let lines = || stat.lines().filter(|line| line.starts_with("cpu"));
    let fields: Vec<u64> = lines()
        .next()
        .context("no processors")?
        .split_whitespace()
        .skip(1)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let unused: u64 = [3, 4, 7].iter().filter_map(|at| fields.get(*at)).sum();
    Ok((lines().count() - 1, Duration::from_millis(unused * 10)))
}

/// Programs that want a processor, over the last minute.
pub(super) fn load_average() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    let first = text.split_whitespace().next().context("no load average")?;
    Ok(first.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_processors_do_not_use_is_idle_waits_or_stolen() {
        let stat = "cpu  1 2 4 100 10 8 16 5 32 64\ncpu0 0 0 0 0\ncpu1 0 0 0 0\nintr 7 7\n";
        let found = unused(stat).expect("a line of all processors");
        assert_eq!(found, (2, Duration::from_millis(1150)));
        assert!(unused("intr 7 7\n").is_err());
    }
}
