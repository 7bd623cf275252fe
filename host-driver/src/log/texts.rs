//! Decodes messages into lines, with the texts and source lines of the firmware's ELF file.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

use defmt_decoder::{Location, Locations, StreamDecoder, Table};
use host_interface::log::{Level, module_of};
use serde::Serialize;
use thiserror::Error;

use super::{BuildId, LogFrame, level_named};

/// Why texts cannot be read.
#[derive(Debug, Error)]
pub enum LogError {
    /// It is no ELF file, or was truncated.
    #[error("the file is no whole ELF file: {0}")]
    NotElf(String),
    /// The ELF file's tables are damaged, or made by another version of defmt.
    #[error("the file's log texts cannot be read: {0}")]
    Table(String),
    /// The ELF file was built without a log.
    #[error("the file holds no log texts: is it the firmware's ELF file?")]
    NoTable,
    /// The ELF file does not say which build it is.
    #[error("the file has no build id: is it the firmware's ELF file?")]
    NoBuildId,
    /// The card runs another build.
    #[error("the file is of build {elf}, but the card runs build {card}: its texts would be wrong")]
    WrongBuild {
        /// The file's build.
        elf: BuildId,
        /// The card's build.
        card: BuildId,
    },
}

/// The texts of a firmware.
pub struct LogTexts {
    table: Table,
    locations: Locations,
    build: BuildId,
}

impl LogTexts {
    /// Reads them from the contents of the firmware's ELF file.
    ///
    /// # Errors
    /// [`LogError`] if there are none.
    pub fn parse(elf: &[u8]) -> Result<Self, LogError> {
        let file = object::File::parse(elf).map_err(|error| LogError::NotElf(error.to_string()))?;
        let table = guarded(|| Table::parse(elf))?.ok_or(LogError::NoTable)?;
        let locations = guarded(|| table.get_locations(elf))?;
        Ok(Self {
            table,
            locations,
            build: BuildId::of_elf(&file)?,
        })
    }

    /// The build of the texts.
    pub fn build(&self) -> BuildId {
        self.build
    }

    /// Checks that they match the firmware on a card.
    ///
    /// # Errors
    /// [`LogError::WrongBuild`] if they do not.
    pub fn check(&self, card: BuildId) -> Result<(), LogError> {
        self.build.check(card)
    }

    /// A decoder for messages of the firmware.
    #[must_use]
    pub fn decoder(&self) -> LogDecoder<'_> {
        LogDecoder {
            stream: self.table.new_stream_decoder(),
            locations: &self.locations,
            malformed: 0,
        }
    }
}

/// Catches panics of the decoder, which stops at inconsistent tables.
fn guarded<T>(run: impl FnOnce() -> anyhow::Result<T>) -> Result<T, LogError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| LogError::Table(format!("{error:#}"))),
        Err(_) => Err(LogError::Table("they contradict themselves".to_owned())),
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// The CPU that logged it: `A` or `B`.
    pub cpu: char,
    /// Microseconds since the firmware started; wraps after 71 minutes.
    pub time_us: u32,
    /// Its level, in lower case.
    pub level: &'static str,
    /// The module of the source, such as `tigon_firmware::link`.
    pub module: String,
    /// The source file.
    pub file: String,
    /// The source line; 0 if unknown.
    pub line: u64,
    /// The message.
    pub text: String,
}

impl LogLine {
    /// The number of its module among those with a level of their own.
    pub fn module_number(&self) -> Option<usize> {
        module_of(&self.module)
    }

    /// Its level.
    pub fn level(&self) -> Level {
        level_named(self.level).unwrap_or(Level::Error)
    }
}

impl std::fmt::Display for LogLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.time_us / 1_000_000, self.time_us % 1_000_000);
        let level = self.level.to_uppercase();
        write!(
            f,
            "{seconds:>5}.{micros:06} {} {level:<5} {} ({}:{})",
            self.cpu, self.text, self.file, self.line
        )
    }
}

/// Sorts messages of both CPUs by their wrapping times.
pub fn by_time(lines: &mut [LogLine]) {
    lines.sort_by(|one, other| {
        let distance = one.time_us.wrapping_sub(other.time_us) as i32;
        match distance {
            0 => Ordering::Equal,
            ..0 => Ordering::Less,
            _ => Ordering::Greater,
        }
    });
}

/// Turns messages into lines.
pub struct LogDecoder<'a> {
    stream: Box<dyn StreamDecoder + Send + Sync + 'a>,
    locations: &'a Locations,
    malformed: u64,
}

impl LogDecoder<'_> {
    /// The lines of some messages, in the order of their times.
    pub fn decode(&mut self, frames: &[LogFrame]) -> Vec<LogLine> {
        let mut lines: Vec<LogLine> = frames.iter().filter_map(|frame| self.one(frame)).collect();
        by_time(&mut lines);
        lines
    }

    fn one(&mut self, frame: &LogFrame) -> Option<LogLine> {
        let (stream, locations) = (&mut self.stream, self.locations);
        let line = catch_unwind(AssertUnwindSafe(|| {
            stream.received(&frame.bytes);
            stream.received(&[0]);
            let message = stream.decode().ok()?;
            let stamp = message.display_timestamp()?.to_string();
            let level = message.level().map_or("info", |level| level.as_str());
            let location = locations.get(&message.index());
            let file = |location: &Location| location.file.display().to_string();
            Some(LogLine {
                cpu: if frame.cpu == 0 { 'A' } else { 'B' },
                time_us: microseconds(&stamp)?,
                level: level_named(level).ok()?.name(),
                module: location.map_or_else(String::new, |location| location.module.clone()),
                file: location.map_or_else(|| "?".to_owned(), file),
                line: location.map_or(0, |location| location.line),
                text: message.display_message().to_string(),
            })
        }));
        let line = line.ok().flatten();
        if line.is_none() {
            self.malformed += 1;
        }
        line
    }

    /// Messages that could not be decoded.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

/// Seconds with six places, as the decoder writes them.
fn microseconds(text: &str) -> Option<u32> {
    let (seconds, micros) = text.split_once('.')?;
    let seconds: u32 = seconds.trim().parse().ok()?;
    let micros: u32 = micros.parse().ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert!(matches!(
            LogTexts::parse(b"not an ELF file"),
            Err(LogError::NotElf(_))
        ));
    }

    #[test]
    fn times_of_both_cpus_are_put_in_order_across_the_wrap() {
        let line = |cpu, time_us| LogLine {
            cpu,
            time_us,
            level: "info",
            module: String::new(),
            file: String::new(),
            line: 1,
            text: String::new(),
        };
        let mut lines = [
            line('A', 3),
            line('A', 9),
            line('B', u32::MAX - 1),
            line('B', 5),
        ];
        by_time(&mut lines);
        let times: Vec<u32> = lines.iter().map(|line| line.time_us).collect();
        assert_eq!(times, [u32::MAX - 1, 3, 5, 9]);
        assert_eq!(microseconds("12.000345"), Some(12_000_345));
        assert_eq!(microseconds("now"), None);
    }
}
