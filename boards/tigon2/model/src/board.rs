//! One board: clock, memory sizes, EEPROM and PCI identity, from a TOML file.
//!
//! The default is `boards/tigon2/tigon2.toml`, the 1 MB fibre AceNIC. Beside it,
//! `tigon2-external-serdes.toml` is the same card with an external SERDES, and
//! `tigon2-copper.toml` the same card with a copper PHY. This module ignores other tables in a
//! board file (timing profiles of the simulator); unknown keys inside its own tables are errors.

use crate::partner::Partner;
use serde::Deserialize;
use std::path::PathBuf;
use thiserror::Error;
use tigon2_chip::Cpu;
use tigon2_chip::memory::SRAM_MAX_BYTES;

/// The board file that [`Board::default`] reads.
const DEFAULT_TOML: &str = include_str!("../../tigon2.toml");

/// The board file that [`Board::external_serdes`] reads.
const EXTERNAL_SERDES_TOML: &str = include_str!("../../tigon2-external-serdes.toml");

/// The board file that [`Board::copper`] reads.
const COPPER_TOML: &str = include_str!("../../tigon2-copper.toml");

/// Smallest SRAM that the size probe of the reference (section 2) looks for.
const SRAM_MIN_BYTES: u32 = 0x4_0000;

/// Why a board file cannot be used.
#[derive(Debug, Error)]
pub enum BoardError {
    /// The text is not TOML, or a key is missing, unknown or of a wrong type.
    #[error("board file: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A number is outside of the chip's limits.
    #[error("board file: {key} = {value:#x}: {rule}")]
    Value {
        /// The key, with its table.
        key: &'static str,
        /// The value in the file.
        value: u64,
        /// The permitted values.
        rule: &'static str,
    },
    /// Two tables that exclude each other.
    #[error("board file: [{one}] and [{other}]: a board has one of them")]
    Both {
        /// One table.
        one: &'static str,
        /// The other table.
        other: &'static str,
    },
}

/// A board.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Board {
    /// The name of the board.
    pub name: String,
    /// Clocks.
    pub clock: Clock,
    /// Memory sizes.
    pub memory: Memory,
    /// The CPUs; two, unless the file says otherwise.
    #[serde(default)]
    pub cpus: CpusPart,
    /// The MAC; the chip's, unless the file says otherwise.
    #[serde(default)]
    pub mac: MacPart,
    /// The serial EEPROM.
    pub eeprom: EepromPart,
    /// The PCI function.
    pub pci: PciIdentity,
    /// The copper PHY; none on a fibre board.
    pub phy: Option<PhyPart>,
    /// The optics of a fibre board, if the file has them: see [`serdes`](Self::serdes).
    pub fibre: Option<FibrePart>,
    /// The other end of the cable.
    #[serde(default)]
    pub wire: WirePart,
    /// The boot memory.
    #[serde(default)]
    pub boot: BootPart,
}

/// The CPUs of a board: the chip's two, and those of a hypothetical board beyond the chip, see
/// [`tigon2_chip::beyond`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpusPart {
    /// The number of CPUs: 2 to 6.
    pub count: u32,
    /// Scratch pad of each CPU after CPU B: a power of two, at most 64 KB.
    pub further_scratch_bytes: u32,
}

impl Default for CpusPart {
    fn default() -> CpusPart {
        CpusPart {
            count: Cpu::ALL.len() as u32,
            further_scratch_bytes: tigon2_chip::memory::SCRATCH_B_BYTES,
        }
    }
}

/// The MAC of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MacPart {
    /// The factor by which the link is faster than it reports: 1 on the chip; 2, 5 or 10.
    pub times: u32,
}

impl Default for MacPart {
    fn default() -> MacPart {
        MacPart { times: 1 }
    }
}

/// The boot memory of a board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootPart {
    /// The file with the boot code, for an engine to read; without it there is no boot memory, and
    /// a reset leaves the card halted for the host.
    pub code: Option<PathBuf>,
    /// The file with the public key that must have signed images in the EEPROM, for the tool that
    /// flashes them.
    pub require_key: Option<PathBuf>,
}

/// The copper PHY of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhyPart {
    /// Its address on the management bus: 1 to 31.
    pub address: u8,
    /// Registers 2 and 3.
    pub id: u32,
    /// How long the link takes to settle, in microseconds: at most 10 s.
    pub negotiation_us: u32,
}

/// The optics of a fibre board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FibrePart {
    /// The SERDES of the optics.
    pub serdes: Serdes,
}

/// The SERDES of a fibre board: it has one (hardware reference, section 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Serdes {
    /// The chip's own: `R[238]` controls it.
    #[default]
    OnChip,
    /// An external part: the pins of `R[44]` control it.
    External,
}

/// The other end of the cable at power-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WirePart {
    /// The link partner, in words.
    pub partner: Partner,
}

/// Clocks of a board.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// Clock of both CPUs in Hz; the microsecond timer divides it.
    pub core_hz: u32,
}

/// Memory sizes of a board, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// External SRAM: a power of two, 256 KB to 8 MB.
    pub sram_bytes: u32,
    /// Scratch pad of CPU A: a power of two, at most 64 KB.
    pub scratch_a_bytes: u32,
    /// Scratch pad of CPU B: a power of two, at most 64 KB.
    pub scratch_b_bytes: u32,
}

/// The serial EEPROM of a board.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EepromPart {
    /// Size in bytes: a power of two, 256 bytes to 256 KB.
    pub bytes: u32,
    /// Bytes of a page, which the part writes at once: a power of two, 8 to 256.
    #[serde(default = "EepromPart::default_page")]
    pub page_bytes: u32,
}

impl EepromPart {
    /// The page of the small parts.
    const fn default_page() -> u32 {
        32
    }
}

/// The PCI function of a board.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PciIdentity {
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Subsystem vendor id.
    pub subsystem_vendor: u16,
    /// Subsystem id.
    pub subsystem: u16,
    /// Revision id.
    pub revision: u8,
    /// Bus clock in MHz: 33 or 66; 133 to 533 on a hypothetical board.
    pub mhz: u32,
    /// Bus width: 32 or 64.
    pub bits: u32,
}

impl Board {
    /// Reads a board file.
    ///
    /// # Errors
    /// [`BoardError`] if the text cannot be parsed or a size is impossible.
    pub fn from_toml(text: &str) -> Result<Board, BoardError> {
        let board: Board = toml::from_str(text)?;
        board.check()?;
        Ok(board)
    }

    /// Size of a CPU's scratch pad in bytes.
    pub fn scratch_bytes(&self, cpu: Cpu) -> u32 {
        match cpu {
            Cpu::A => self.memory.scratch_a_bytes,
            Cpu::B => self.memory.scratch_b_bytes,
            _ => self.cpus.further_scratch_bytes,
        }
    }

    /// The SERDES; none on a copper board.
    pub fn serdes(&self) -> Option<Serdes> {
        let fibre = self.phy.is_none();
        fibre.then(|| self.fibre.unwrap_or_default().serdes)
    }

    /// Its CPUs.
    pub fn cpus(&self) -> &'static [Cpu] {
        Cpu::first(self.cpus.count as usize)
    }

    fn check(&self) -> Result<(), BoardError> {
        let power_of_two = |key, value: u32, min: u32, max: u32, rule| {
            if value.is_power_of_two() && (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(BoardError::Value {
                    key,
                    value: value.into(),
                    rule,
                })
            }
        };
        power_of_two(
            "memory.sram_bytes",
            self.memory.sram_bytes,
            SRAM_MIN_BYTES,
            SRAM_MAX_BYTES,
            "must be a power of two from 256 KB to 8 MB",
        )?;
        let scratch_rule = "must be a power of two from 256 bytes to 64 KB";
        let (a, b) = (self.memory.scratch_a_bytes, self.memory.scratch_b_bytes);
        power_of_two("memory.scratch_a_bytes", a, 0x100, 0x1_0000, scratch_rule)?;
        power_of_two("memory.scratch_b_bytes", b, 0x100, 0x1_0000, scratch_rule)?;
        let further = self.cpus.further_scratch_bytes;
        power_of_two(
            "cpus.further_scratch_bytes",
            further,
            0x100,
            0x1_0000,
            scratch_rule,
        )?;
        power_of_two(
            "eeprom.bytes",
            self.eeprom.bytes,
            0x100,
            tigon2_chip::eeprom::MAX_BYTES,
            "must be a power of two from 256 bytes to 256 KB",
        )?;
        power_of_two(
            "eeprom.page_bytes",
            self.eeprom.page_bytes,
            8,
            0x100,
            "must be a power of two from 8 to 256 bytes",
        )?;
        let one_of = |key, value: u32, choices: &[u32], rule| {
            if choices.contains(&value) {
                Ok(())
            } else {
                Err(BoardError::Value {
                    key,
                    value: value.into(),
                    rule,
                })
            }
        };
        let count = self.cpus.count;
        one_of("cpus.count", count, &[2, 3, 4, 5, 6], "must be from 2 to 6")?;
        let times = self.mac.times;
        one_of("mac.times", times, &[1, 2, 5, 10], "must be 1, 2, 5 or 10")?;
        let clocks = [33, 66, 133, 266, 533];
        let rule = "must be 33, 66, 133, 266 or 533";
        one_of("pci.mhz", self.pci.mhz, &clocks, rule)?;
        one_of("pci.bits", self.pci.bits, &[32, 64], "must be 32 or 64")?;
        if self.phy.is_some() && self.fibre.is_some() {
            return Err(BoardError::Both {
                one: "phy",
                other: "fibre",
            });
        }
        if let Some(phy) = &self.phy {
            let range = |key, value: u32, range: std::ops::RangeInclusive<u32>, rule| {
                let value_is_good = range.contains(&value);
                let value = value.into();
                value_is_good
                    .then_some(())
                    .ok_or(BoardError::Value { key, value, rule })
            };
            let address = phy.address.into();
            range("phy.address", address, 1..=31, "must be from 1 to 31")?;
            let time = phy.negotiation_us;
            range(
                "phy.negotiation_us",
                time,
                0..=10_000_000,
                "must be at most 10 s",
            )?;
        }
        if !(1_000_000..=4_000_000_000).contains(&self.clock.core_hz) {
            return Err(BoardError::Value {
                key: "clock.core_hz",
                value: self.clock.core_hz.into(),
                rule: "must be from 1 MHz to 4 GHz",
            });
        }
        Ok(())
    }
}

impl Board {
    /// The default board in a PCI bus of so many bits and MHz.
    pub fn with_bus(bits: u32, mhz: u32) -> Self {
        let mut board = Board::default();
        (board.pci.bits, board.pci.mhz) = (bits, mhz);
        board
    }

    /// The 1 MB fibre AceNIC of `boards/tigon2/tigon2-external-serdes.toml`.
    pub fn external_serdes() -> Self {
        Board::from_toml(EXTERNAL_SERDES_TOML)
            .expect("the built-in board file is valid: a test reads it")
    }

    /// The 1 MB copper AceNIC of `boards/tigon2/tigon2-copper.toml`.
    pub fn copper() -> Self {
        Board::from_toml(COPPER_TOML).expect("the built-in board file is valid: a test reads it")
    }
}

impl Default for Board {
    /// The 1 MB fibre AceNIC of `boards/tigon2/tigon2.toml`.
    fn default() -> Self {
        Board::from_toml(DEFAULT_TOML).expect("the built-in board file is valid: a test reads it")
    }
}

#[cfg(test)]
mod tests;
