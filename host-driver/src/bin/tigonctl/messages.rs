//! Prints the firmware's log messages.

use std::path::Path;

use anyhow::{Context, Result};
use host_driver::log::{LevelFilter, LogDecoder, LogFrame, LogLine, LogTexts};
use serde_json::json;

use super::connect::AnyNic;
use super::output::Output;

/// Messages that were read.
#[derive(Default)]
pub struct Fetched {
    pub frames: Vec<LogFrame>,
    /// Messages that were discarded before they could be read.
    pub missed: u64,
    /// Messages of CPU A and B that were dropped on the card.
    pub lost: [u64; 2],
}

/// Reads the texts of a firmware.
pub fn read_texts(elf: &Path) -> Result<LogTexts> {
    let contents = std::fs::read(elf).with_context(|| format!("ELF file {}", elf.display()))?;
    LogTexts::parse(&contents).with_context(|| format!("ELF file {}", elf.display()))
}

/// Prints messages, and losses since the last time.
pub struct Printer<'a> {
    decoder: LogDecoder<'a>,
    filter: LevelFilter,
    lost: [u64; 2],
    malformed: u64,
    output: &'a Output,
}

impl<'a> Printer<'a> {
    pub fn new(texts: &'a LogTexts, filter: LevelFilter, output: &'a Output) -> Self {
        Self {
            decoder: texts.decoder(),
            filter,
            lost: [0; 2],
            malformed: 0,
            output,
        }
    }

    pub fn print(&mut self, fetched: &Fetched) -> Result<()> {
        for line in self.decoder.decode(&fetched.frames) {
            if self.filter.shows(line.module_number(), line.level()) {
                print_line(&line, self.output)?;
            }
        }
        let malformed = self.decoder.malformed();
        if fetched.lost == self.lost && fetched.missed == 0 && malformed == self.malformed {
            return Ok(());
        }
        self.lost = fetched.lost;
        self.malformed = malformed;
        let ([a, b], missed) = (fetched.lost, fetched.missed);
        let value = json!({ "cpu_a": a, "cpu_b": b, "missed": missed, "malformed": malformed });
        let text = format!(
            "lost for lack of room on the card: CPU A {a}, CPU B {b}; not kept by the driver: \
             {missed}; not decoded: {malformed}"
        );
        self.output.result("log-lost", value, &text);
        Ok(())
    }
}

fn print_line(line: &LogLine, output: &Output) -> Result<()> {
    let value = serde_json::to_value(line)?;
    // Paths relative to the working folder, as the user would type them.
    let here = std::env::current_dir().ok();
    let file =
        here.and_then(|here| Some(Path::new(&line.file).strip_prefix(here).ok()?.to_owned()));
    let text = match file {
        Some(file) => LogLine {
            file: file.display().to_string(),
            ..line.clone()
        }
        .to_string(),
        None => line.to_string(),
    };
    output.result("log", value, &text);
    Ok(())
}

/// Prints what a card that this process drives has logged so far.
pub fn print_rest(nic: &mut AnyNic, elf: &Path, output: &Output) -> Result<()> {
    let texts = read_texts(elf)?;
    let (frames, missed) = nic.drain_log()?;
    let fetched = Fetched {
        frames,
        missed,
        lost: nic.log_lost(),
    };
    Printer::new(&texts, LevelFilter::default(), output).print(&fetched)
}
