//! Shows the progress of a step, on a terminal and in a log file.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// How often a bar of unknown length moves.
const TICK: Duration = Duration::from_millis(120);

/// A bar on a terminal, a line every tenth elsewhere.
#[derive(Debug)]
pub struct Progress {
    /// Who speaks.
    name: &'static str,
    bar: Option<ProgressBar>,
    tenths: u64,
}

impl Progress {
    /// Nothing is shown yet. `name` stands before all that is said.
    pub fn new(name: &'static str) -> Self {
        Progress {
            name,
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
                bar.set_style(style("{spinner} {msg} {elapsed}"));
                bar.set_message(format!("{}: {what}", self.name));
                bar.enable_steady_tick(TICK);
            }
            None => println!("{}: {what}", self.name),
        }
    }

    /// `done` of `all` parts of the step are done.
    pub fn count(&mut self, done: u64, all: u64) {
        let tenths = (done * 10).checked_div(all).unwrap_or(0);
        match &self.bar {
            Some(bar) => {
                if bar.length() != Some(all) {
                    bar.set_length(all);
                    bar.set_style(style("{msg} [{bar:30}] {pos}/{len} {elapsed}"));
                }
                bar.set_position(done);
            }
            None if tenths != self.tenths => println!("{}: {tenths}0 % done", self.name),
            None => {}
        }
        self.tenths = tenths;
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
