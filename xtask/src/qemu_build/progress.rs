//! How far a build is, on a terminal and in a log file.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// A bar on a terminal, a line every tenth elsewhere.
pub struct Progress {
    bar: Option<ProgressBar>,
    tenths: u64,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new() -> Self {
        Progress {
            bar: std::io::stderr()
                .is_terminal()
                .then(ProgressBar::new_spinner),
            tenths: 0,
        }
    }

    /// A step of unknown length begins.
    pub fn step(&mut self, what: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(format!("qemu: {what}"));
                bar.enable_steady_tick(std::time::Duration::from_millis(120));
            }
            None => println!("qemu: {what}"),
        }
    }

    /// `done` of `all` parts of the step are done.
    pub fn count(&mut self, done: u64, all: u64) {
        let tenths = (done * 10).checked_div(all).unwrap_or(0);
        match &self.bar {
            Some(bar) => {
                if bar.length() != Some(all) {
                    bar.set_length(all);
                    bar.set_style(
                        ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {elapsed}")
                            .unwrap_or_else(|_| ProgressStyle::default_bar()),
                    );
                }
                bar.set_position(done);
            }
            None if tenths != self.tenths => println!("qemu: {}0 % compiled", tenths),
            None => {}
        }
        self.tenths = tenths;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What ninja says at the start of each line: `[12/345] ...`.
pub fn ninja_count(line: &str) -> Option<(u64, u64)> {
    let (done, all) = line.strip_prefix('[')?.split_once(']')?.0.split_once('/')?;
    Some((done.parse().ok()?, all.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::ninja_count;

    #[test]
    fn ninja_lines_are_read_and_others_are_not() {
        let line = "[930/1221] Compiling C object libcommon.a.p/plugins_core.c.o";
        assert_eq!(ninja_count(line), Some((930, 1221)));
        assert_eq!(ninja_count("[930] x"), None);
        assert_eq!(ninja_count("ninja: error"), None);
        assert_eq!(ninja_count("[a/b] x"), None);
    }
}
