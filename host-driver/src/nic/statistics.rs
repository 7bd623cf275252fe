//! All statistics: of the card, of the firmware and of the driver.

use std::collections::BTreeMap;

use host_interface::custom_counters;
use host_interface::extension::{DROP_COUNT, DROPS, Extension, HANDLER_COUNT, HANDLERS};
use host_interface::statistics::{FIELDS, Statistics};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::control::Control;
use super::counters::DriverCounters;
use super::drops::DropCounts;
use super::error::NicError;
use super::events::Link;
use crate::transport::Transport;
use tigon2_chip::mac::MacStatistic;

/// Counts by name, in a fixed order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named(pub Vec<(&'static str, u64)>);

impl Named {
    /// The count of a name; `None` if there is none.
    pub fn get(&self, name: &str) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, count)| *count)
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, count) in &self.0 {
            map.serialize_entry(name, count)?;
        }
        map.end()
    }
}

/// A snapshot of all counts.
#[derive(Debug, Clone, Serialize)]
pub struct NicStatistics {
    /// The link.
    pub link: Link,
    /// Version of the firmware, from its image.
    pub firmware_version: String,
    /// The driver's own counters.
    pub driver: DriverCounters,
    /// Frames that the driver dropped, by reason.
    pub driver_drops: Named,
    /// Frames that the firmware dropped, by reason; empty with other firmware.
    pub firmware_drops: Named,
    /// Runs of each of the firmware's handlers; empty with other firmware.
    pub handlers: Named,
    /// The custom counters of this firmware, by name.
    pub custom_counters: BTreeMap<String, u64>,
    /// The statistics block, fields that are not zero.
    pub card: Named,
    /// Counts of the card's emulator that explain a stall; empty without one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub emulator: BTreeMap<String, u64>,
    /// Times that the link changed.
    pub link_changes: u64,
    /// Events of unknown kind and errors reported by the firmware.
    pub unknown_events: u64,
    /// Errors reported by the firmware.
    pub firmware_errors: u64,
}

fn named(counts: &DropCounts) -> Named {
    Named(
        counts
            .iter()
            .map(|(reason, count)| (reason.name(), count))
            .collect(),
    )
}

/// The counters of the block that are not zero, under their names.
fn card_counts(statistics: &Statistics) -> Named {
    let words = statistics.words();
    let word = |index: usize| words.get(index).copied().map_or(0, u64::from);
    let counts = FIELDS
        .iter()
        .filter(|field| !matches!(field.name, "physical_address" | "description" | "padding"))
        .filter_map(|field| {
            let value = match field.words {
                1 => word(field.word),
                2 => word(field.word) << 32 | word(field.word + 1),
                many => (field.word..field.word + many).map(word).sum(),
            };
            (value != 0).then_some((field.name, value))
        });
    Named(counts.collect())
}

/// Every word of a statistics block by name, including zeros: 64-bit counters as one number,
/// arrays with an index.
pub fn every_field(statistics: &Statistics) -> Vec<(String, u64)> {
    let words = statistics.words();
    let word = |index: usize| words.get(index).copied().map_or(0, u64::from);
    let mut fields = Vec::new();
    for field in FIELDS {
        match (field.words, field.name) {
            (1, name) => fields.push((name.to_owned(), word(field.word))),
            (2, name) => fields.push((
                name.to_owned(),
                word(field.word) << 32 | word(field.word + 1),
            )),
            (count, name) => fields.extend(
                (0..count).map(|index| (format!("{name}[{index}]"), word(field.word + index))),
            ),
        }
    }
    fields
}

/// The entries of [`custom_counters`], up to the first without a name.
fn named_counts(words: &[u32]) -> BTreeMap<String, u64> {
    let entries = words.chunks_exact(1 + custom_counters::NAME_WORDS);
    let named = entries.map_while(|entry| {
        let (count, name) = entry.split_first()?;
        let name: String = custom_counters::name_of(name.try_into().ok()?).collect();
        (!name.is_empty()).then_some((name, u64::from(*count)))
    });
    named.collect()
}

/// The emulator's counts from its text; other text is skipped.
fn emulator_counts(text: &str) -> BTreeMap<String, u64> {
    let counts = text.split_whitespace().filter_map(|count| {
        let (name, value) = count.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    counts.collect()
}

impl<T: Transport> Control<T> {
    /// Errors that the firmware has reported by events since it was loaded.
    pub fn firmware_errors(&self) -> u64 {
        self.events.errors
    }

    /// Version of the loaded firmware.
    pub fn firmware_version(&self) -> String {
        match host_interface::image::Image::parse(&self.image) {
            Ok(image) => image.version().to_string(),
            Err(_) if self.own => "the card's own".to_owned(),
            Err(_) => "none".to_owned(),
        }
    }

    /// The statistics block as the card last wrote it.
    ///
    /// # Errors
    /// [`NicError::Dma`] is impossible here; it is passed on, not hidden.
    pub fn card_statistics(&self) -> Result<Statistics, NicError> {
        Ok(Statistics::from_words(self.memory.statistics()?))
    }

    /// The MAC's own counters in NIC memory (BAR 480), as Linux reads them.
    ///
    /// # Errors
    /// What the transport says.
    pub fn mac_statistics(&mut self) -> Result<Vec<(String, u32)>, NicError> {
        let mut counts = Vec::new();
        for counter in MacStatistic::ALL {
            if *counter == MacStatistic::Collisions1 {
                for collisions in 1..=15 {
                    let Some(address) = MacStatistic::collision(collisions) else {
                        continue;
                    };
                    let value = self.transport.read(host_interface::bar::DIRECT + address)?;
                    counts.push((format!("Collisions{collisions}"), value));
                }
            } else {
                let value = self.transport.read(counter.bar_offset())?;
                counts.push((format!("{counter:?}"), value));
            }
        }
        Ok(counts)
    }

    /// How often each of the firmware's handlers has run; empty with other firmware.
    ///
    /// # Errors
    /// What the transport says.
    pub fn handler_counts(&mut self) -> Result<Named, NicError> {
        let counts = self.counts::<HANDLER_COUNT>(Extension::HandlerCounts)?;
        let named = HANDLERS.iter().zip(counts.iter().flatten());
        Ok(Named(
            named
                .map(|(handler, count)| (handler.name(), u64::from(*count)))
                .collect(),
        ))
    }

    /// Frames that the firmware dropped, by reason; empty with other firmware.
    ///
    /// # Errors
    /// What the transport says.
    pub fn firmware_drops(&mut self) -> Result<Named, NicError> {
        let counts = self.counts::<DROP_COUNT>(Extension::DropCounts)?;
        let named = DROPS.iter().zip(counts.iter().flatten());
        Ok(Named(
            named
                .map(|(reason, count)| (reason.name(), u64::from(*count)))
                .collect(),
        ))
    }

    /// The firmware's custom counters, by name; empty with other firmware.
    ///
    /// # Errors
    /// What the transport says.
    pub fn custom_counters(&mut self) -> Result<BTreeMap<String, u64>, NicError> {
        const WORDS: usize = custom_counters::BYTES as usize / 4;
        let words = self.counts::<WORDS>(Extension::CustomCounters)?;
        Ok(words.map_or_else(BTreeMap::new, |words| named_counts(&words)))
    }

    /// An array of words in NIC memory whose address is in an extension word.
    fn counts<const COUNT: usize>(
        &mut self,
        pointer: Extension,
    ) -> Result<Option<[u32; COUNT]>, NicError> {
        if !self.ours {
            return Ok(None);
        }
        let address = self.extension(pointer)?;
        if address == 0 {
            return Ok(None);
        }
        let mut words = [0; COUNT];
        self.peek_memory(address, &mut words)?;
        Ok(Some(words))
    }

    /// Requests fresh statistics from the card and collects all counts.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn statistics(&mut self) -> Result<NicStatistics, NicError> {
        self.update_statistics()?;
        self.glance()
    }

    /// Collects all counts without a request; the card's are as old as its last update.
    ///
    /// # Errors
    /// What the transport says.
    pub fn glance(&mut self) -> Result<NicStatistics, NicError> {
        Ok(NicStatistics {
            link: self.events.link,
            firmware_version: self.firmware_version(),
            driver: self.counters(),
            driver_drops: named(&self.drops()),
            firmware_drops: self.firmware_drops()?,
            handlers: self.handler_counts()?,
            custom_counters: self.custom_counters()?,
            card: card_counts(&self.card_statistics()?),
            emulator: emulator_counts(&self.transport.counts()?.unwrap_or_default()),
            link_changes: self.events.link_changes,
            unknown_events: self.events.unknown,
            firmware_errors: self.events.errors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulators_counts_are_numbers_with_names() {
        let counts = emulator_counts("lost=0 lock_held_us=12 nonsense x=y =");
        let expected = [("lost".to_owned(), 0), ("lock_held_us".to_owned(), 12)];
        assert_eq!(counts, expected.into());
        assert!(emulator_counts("").is_empty());
    }

    #[test]
    fn custom_counters_end_with_the_first_that_has_no_name() {
        let entry = |count, name| {
            let mut entry = vec![count];
            entry.extend(custom_counters::name_words(name));
            entry
        };
        let words = [
            entry(3, "pings"),
            entry(0, "others"),
            vec![9, 0, 0, 0],
            entry(5, "behind"),
        ];
        let counts = named_counts(&words.concat());
        let expected = [("others".to_owned(), 0), ("pings".to_owned(), 3)];
        assert_eq!(counts, expected.into());
        assert!(named_counts(&[]).is_empty());
    }
}
