//! The parameters of the cycle model, by named profile, from a board file.
//!
//! A board file has `[timing.NAME]` tables. `default` has every key, but that those of the host's
//! accesses on the bus (`pio_wr`, `pio_rd`) are 0 where they are not named; another profile names its
//! `base` and the keys that differ from it:
//!
//! ```toml
//! [timing.default]
//! sram_lat = 2
//! # ...
//!
//! [timing.soft-contention]
//! base = "default"
//! reg_ld = 10
//! ```

use crate::cpu::Costs;
use serde::Deserialize;
use thiserror::Error;

/// The board file that [`Parameters::default`] reads.
const DEFAULT_TOML: &str = include_str!("../../../boards/tigon2/tigon2.toml");

/// A profile cannot be had.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The text is no TOML.
    #[error("board file: {0}")]
    Syntax(#[from] toml::de::Error),
    /// There is no such profile.
    #[error("board file: no timing profile {name}; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A profile is its own base.
    #[error("board file: timing profile {0} is its own base")]
    Circle(String),
    /// A key is missing, unknown or of a wrong type.
    #[error("board file: timing profile {name}: {reason}")]
    Key {
        /// The profile.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A figure with which the engines could not work.
    #[error("board file: timing profile {name}: {key} must be {rule}")]
    Value {
        /// The profile.
        name: String,
        /// The key.
        key: &'static str,
        /// What is allowed.
        rule: &'static str,
    },
}

/// Who gets the SRAM port when several want it; the MAC is always first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// DMA read, DMA write, CPU A, CPU B.
    Fixed,
    /// These four in turn.
    RoundRobin,
    /// The CPUs before DMA.
    CpuFirst,
}

/// How often transactions stall, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusStalls {
    /// One transaction in so many has a stall, at random; 0 for none.
    pub every: u32,
    /// Its length in core cycles, at least and at most.
    pub least: u64,
    /// The same at most.
    pub most: u64,
}

/// The figures of a profile. Times are core cycles unless they say something else.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// SRAM load: from the grant of the port to the next instruction.
    pub sram_lat: u64,
    /// Instruction line: from the grant of a beat to its use.
    pub fill_lat: u64,
    /// Critical word first, and streaming; else the whole line is waited for.
    pub cwf: bool,
    /// Entries of the store buffer.
    pub wb: u64,
    /// Cycles of the SRAM port per access.
    pub beat: u64,
    /// Bytes that an access of an engine moves: the width of the port. A CPU moves 8 at most.
    #[serde(default = "chip_port_bytes")]
    pub port_bytes: u32,
    /// Cycles to turn the SRAM port from reading to writing and back.
    pub turn: u64,
    /// Who gets the SRAM port.
    pub arb: Arbitration,
    /// Stall of a load from a register of the chip.
    pub reg_ld: u64,
    /// Stall of a store to a register of the chip.
    pub reg_st: u64,
    /// Extra cycles of a load from the scratch pad.
    pub sp_ld: u64,
    /// Extra cycles of a store to the scratch pad.
    pub sp_st: u64,
    /// More of them if the next instruction uses what was loaded.
    pub load_use: u64,
    /// Extra cycles of a taken branch or jump.
    pub br: u64,
    /// DMA: from the descriptor's last word to the start of the transfer.
    pub dma_start: u64,
    /// DMA: from the register write to the start of a direct transfer.
    pub dma_dir: u64,
    /// DMA: from the last beat to the side effects.
    pub dma_end: u64,
    /// PCI clocks of a read transaction before its first data beat.
    pub pci_rd: u64,
    /// PCI clocks of a write transaction before its first data beat.
    pub pci_wr: u64,
    /// The latter two vary by up to this part of them, 0 to 1.
    pub jit: f64,
    /// How often a transaction stalls between two beats, which no board does by itself.
    #[serde(default)]
    pub stalls: BusStalls,
    /// Longest PCI transaction, in bytes.
    pub burst: u32,
    /// Beats of 8 bytes in the FIFO of a DMA channel.
    pub fifo: u32,
    /// Beats in the FIFO at which a write channel asks for the bus.
    pub thresh: u32,
    /// Host: from the interrupt line to the service routine, in nanoseconds.
    pub int_delay_ns: u64,
    /// Host: one access to the card, in nanoseconds.
    pub pio_ns: u64,
    /// PCI clocks for which an access of the host to the card has the bus: a posted write.
    #[serde(default)]
    pub pio_wr: u64,
    /// The same for a read. 0 for both leaves the bus to the card.
    #[serde(default)]
    pub pio_rd: u64,
    /// Host: fixed part of a service routine, in nanoseconds.
    pub service_ns: u64,
    /// Host: the routine's time for each received frame, in nanoseconds.
    pub rx_ns: u64,
    /// Host: time to produce a frame to send, in nanoseconds; 0 for one mailbox write a
    /// batch.
    pub gen_ns: u64,
    /// Whether the source of received frames holds while the card is nearly full.
    pub fc: bool,
}

impl Parameters {
    /// What instructions in the scratch pad cost.
    #[inline]
    pub(crate) fn costs(&self) -> Costs {
        Costs {
            load: self.sp_ld,
            store: self.sp_st,
            load_use: self.load_use,
            branch: self.br,
        }
    }

    /// The same with a bus that accesses of the host have their share of. A posted write: address,
    /// the slow decode of a card whose registers are memory, one beat, turnaround, and idle clocks
    /// for arbitration. A read: the 16 clocks that a target may take for its first beat, and what a
    /// write takes.
    pub fn with_host_on_the_bus(self) -> Parameters {
        Parameters {
            pio_wr: 8,
            pio_rd: 24,
            ..self
        }
    }

    /// Reads a profile of a board file.
    ///
    /// # Errors
    /// [`ProfileError`] if there is no such profile or a key of it is wrong.
    pub fn from_toml(text: &str, name: &str) -> Result<Parameters, ProfileError> {
        let board: toml::Table = toml::from_str(text)?;
        let empty = toml::Table::new();
        let profiles = board.get("timing").and_then(|timing| timing.as_table());
        let table = merged(profiles.unwrap_or(&empty), name, 0)?;
        let parameters: Parameters =
            table
                .try_into()
                .map_err(|error: toml::de::Error| ProfileError::Key {
                    name: name.to_owned(),
                    reason: error.message().to_owned(),
                })?;
        parameters.check(name)?;
        Ok(parameters)
    }

    /// The profiles of a board file, by name.
    ///
    /// # Errors
    /// [`ProfileError::Syntax`] if the text is no TOML.
    pub fn profiles(text: &str) -> Result<Vec<String>, ProfileError> {
        let board: toml::Table = toml::from_str(text)?;
        let profiles = board.get("timing").and_then(|timing| timing.as_table());
        Ok(profiles.map_or_else(Vec::new, names))
    }

    /// Nanoseconds of the host's service routine in which it gets `frames`.
    pub const fn service_time(&self, frames: u32) -> u64 {
        self.service_ns + frames as u64 * self.rx_ns
    }

    fn check(&self, name: &str) -> Result<(), ProfileError> {
        let rules = [
            ("beat", (1..=64).contains(&self.beat), "from 1 to 64 cycles"),
            (
                "port_bytes",
                (8..=256).contains(&self.port_bytes) && self.port_bytes.is_power_of_two(),
                "a power of two from 8 to 256 bytes",
            ),
            ("jit", (0.0..=1.0).contains(&self.jit), "a part from 0 to 1"),
            (
                "burst",
                (8..=65536).contains(&self.burst) && self.burst.is_multiple_of(8),
                "a multiple of 8 from 8 to 65536 bytes",
            ),
            (
                "fifo",
                (1..=4096).contains(&self.fifo),
                "from 1 to 4096 beats",
            ),
            (
                "thresh",
                (1..=self.fifo).contains(&self.thresh),
                "from 1 to the FIFO's beats",
            ),
            (
                "stalls",
                self.stalls.least <= self.stalls.most,
                "of a least length that is not above the most",
            ),
        ];
        let wrong = rules.iter().find(|(_, right, _)| !right);
        wrong.map_or(Ok(()), |(key, _, rule)| {
            Err(ProfileError::Value {
                name: name.to_owned(),
                key,
                rule,
            })
        })
    }
}

impl Default for Parameters {
    /// The profile `default` of `boards/tigon2/tigon2.toml`.
    fn default() -> Self {
        Parameters::from_toml(DEFAULT_TOML, "default")
            .expect("the built-in board file is valid: a test reads it")
    }
}

/// The chip's port has 64 bits; board files of the chip need not say so.
const fn chip_port_bytes() -> u32 {
    8
}

fn names(profiles: &toml::Table) -> Vec<String> {
    profiles.keys().cloned().collect()
}

/// The keys of a profile over those of its base.
fn merged(profiles: &toml::Table, name: &str, depth: usize) -> Result<toml::Table, ProfileError> {
    if depth > profiles.len() {
        return Err(ProfileError::Circle(name.to_owned()));
    }
    let unknown = || ProfileError::Unknown {
        name: name.to_owned(),
        known: names(profiles).join(", "),
    };
    let mut own = profiles
        .get(name)
        .and_then(|profile| profile.as_table())
        .ok_or_else(unknown)?
        .clone();
    let Some(base) = own.remove("base") else {
        return Ok(own);
    };
    let base = base.as_str().ok_or_else(|| ProfileError::Key {
        name: name.to_owned(),
        reason: "base must be the name of a profile".to_owned(),
    })?;
    let mut table = merged(profiles, base, depth + 1)?;
    table.extend(own);
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Parameters {
        Parameters::from_toml(DEFAULT_TOML, name).expect(name)
    }

    #[test]
    fn the_board_file_has_the_default_and_three_second_opinions() {
        let default = Parameters::default();
        assert_eq!(
            (
                default.sram_lat,
                default.reg_ld,
                default.pci_rd,
                default.burst
            ),
            (2, 8, 75, 512)
        );
        let soft = read("soft-contention");
        assert_eq!(
            soft,
            Parameters {
                arb: Arbitration::RoundRobin,
                reg_ld: 10,
                reg_st: 3,
                ..default.clone()
            }
        );
        let slow = read("slow-scratch");
        assert_eq!((slow.sp_ld, slow.br, slow.reg_ld), (2, 0, 6));
        let registers = read("slow-registers");
        assert_eq!((registers.br, registers.reg_ld), (0, 12));
        assert_eq!(Parameters::profiles(DEFAULT_TOML).expect("TOML").len(), 4);
    }

    #[test]
    fn a_profile_may_have_a_bus_that_stalls() {
        let stalls = "stalls = { every = 180, least = 5, most = 50000 }";
        let text = format!("{DEFAULT_TOML}\n[timing.stalls]\nbase = \"default\"\n{stalls}\n");
        let stalls = BusStalls {
            every: 180,
            least: 5,
            most: 50_000,
        };
        let expected = Parameters {
            stalls,
            ..Parameters::default()
        };
        let read = Parameters::from_toml(&text, "stalls").expect("a profile");
        assert_eq!(read, expected);
        assert_eq!(Parameters::default().stalls, BusStalls::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str, name: &str| {
            Parameters::from_toml(text, name)
                .expect_err(name)
                .to_string()
        };
        assert!(error(DEFAULT_TOML, "nowhere").contains("slow-scratch"));
        assert!(error("[timing.a]\nbase = \"a\"\n", "a").contains("own base"));
        assert!(error("[timing.a]\nbase = 3\n", "a").contains("base"));
        assert!(error("[timing.a]\nsram_lat = 2\n", "a").contains("fill_lat"));
        assert!(error("timing = 1", "default").contains("no timing profile"));
        let more = format!("{DEFAULT_TOML}\n[timing.more]\nbase = \"default\"\nspeed = 1\n");
        assert!(error(&more, "more").contains("speed"));
        for (key, value) in [
            ("beat", "0"),
            ("jit", "1.5"),
            ("burst", "12"),
            ("thresh", "99"),
            ("stalls", "{ every = 1, least = 9, most = 3 }"),
        ] {
            let text =
                format!("{DEFAULT_TOML}\n[timing.bad]\nbase = \"default\"\n{key} = {value}\n");
            assert!(error(&text, "bad").contains(key), "{key}");
        }
    }
}
