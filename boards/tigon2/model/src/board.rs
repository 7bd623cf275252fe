//! One board: clock, memory sizes, EEPROM and PCI identity, read from TOML.
//!
//! The default is `boards/tigon2/tigon2.toml`, the 1 MB fibre AceNIC; beside it are
//! `tigon2-external-serdes.toml`, the same card with a SERDES beside the chip, and
//! `tigon2-copper.toml`, the same card with a copper PHY. Further tables in a board file
//! (timing profiles of the simulator) belong to other readers and are ignored here; inside
//! the tables below, unknown keys are errors.

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

/// A board file cannot be used.
#[derive(Debug, Error)]
pub enum BoardError {
    /// The text is no TOML, or a key is missing, unknown or of a wrong type.
    #[error("board file: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A number is outside of what the chip can have.
    #[error("board file: {key} = {value:#x}: {rule}")]
    Value {
        /// The key, with its table.
        key: &'static str,
        /// What the file says.
        value: u64,
        /// What is allowed.
        rule: &'static str,
    },
    /// Two tables that no board has both.
    #[error("board file: [{one}] and [{other}]: a board has one of them")]
    Both {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
}

/// A board.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Board {
    /// What to call the board.
    pub name: String,
    /// Clocks.
    pub clock: Clock,
    /// Memory sizes.
    pub memory: Memory,
    /// The CPUs; two, if the board is one of the chip's.
    #[serde(default)]
    pub cpus: CpusPart,
    /// The MAC; the chip's, if nothing else is said.
    #[serde(default)]
    pub mac: MacPart,
    /// The serial EEPROM.
    pub eeprom: EepromPart,
    /// The PCI function.
    pub pci: PciIdentity,
    /// The copper PHY; none on a fibre board.
    pub phy: Option<PhyPart>,
    /// What a fibre board has instead, if the file says it: see [`serdes`](Self::serdes).
    pub fibre: Option<FibrePart>,
    /// What the card is plugged into.
    #[serde(default)]
    pub wire: WirePart,
    /// The boot memory.
    #[serde(default)]
    pub boot: BootPart,
}

/// The CPUs of a board: the chip's two, and those of a hypothetical one beyond it, see
/// [`tigon2_chip::beyond`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpusPart {
    /// How many: 2 to 6.
    pub count: u32,
    /// Scratch pad of each behind CPU B: a power of two, at most 64 KB.
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
    /// How many times faster than it says the link is: 1 on the chip; 2, 5 or 10.
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
    /// The file with what it holds, for an engine to read; none: there is no boot memory,
    /// and a reset leaves the card halted for the host.
    pub code: Option<PathBuf>,
    /// The file with the public key that images in the EEPROM must be signed with, for the
    /// tool that flashes them.
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
    /// Which SERDES they hang on.
    pub serdes: Serdes,
}

/// The SERDES of a fibre board: it has one (hardware reference, section 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Serdes {
    /// The chip's own: `R[238]` is its control.
    #[default]
    OnChip,
    /// A part beside the chip: the pins of `R[44]` are its control.
    External,
}

/// The other end of the cable, when the card is switched on.
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
    /// Bytes of a page, which is written in one go: a power of two, 8 to 256.
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
    /// [`BoardError`] when the text cannot be read or a size is impossible.
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
mod tests {
    use super::*;

    /// The built-in file is the card of the reference: 1 MB, 16 KB and 8 KB scratch pads
    /// (reference 2, C), 12AE:0001.
    #[test]
    fn the_default_board_is_the_fibre_acenic() {
        let board = Board::default();
        assert_eq!(board.clock.core_hz, 88_000_000);
        assert_eq!(board.memory.sram_bytes, 0x10_0000);
        assert_eq!(
            board.scratch_bytes(Cpu::A),
            tigon2_chip::memory::SCRATCH_A_BYTES
        );
        assert_eq!(
            board.scratch_bytes(Cpu::B),
            tigon2_chip::memory::SCRATCH_B_BYTES
        );
        assert_eq!((board.pci.vendor, board.pci.device), (0x12AE, 1));
    }

    /// The copper board differs in its PHY and in what the host sees of it: 12AE:0002.
    #[test]
    fn the_copper_board_is_the_same_card_with_a_phy() {
        let (fibre, copper) = (Board::default(), Board::copper());
        assert_eq!((copper.pci.vendor, copper.pci.device), (0x12AE, 2));
        assert_eq!(copper.phy.map(|phy| phy.address), Some(1));
        assert_eq!(copper.phy.map(|phy| phy.id >> 4), Some(0x20_604));
        assert_eq!((copper.memory, copper.clock), (fibre.memory, fibre.clock));
        assert_eq!((fibre.phy, fibre.wire), (None, copper.wire));
        assert_eq!(fibre.wire.partner, Partner::default());
    }

    /// Reference 11: a fibre board has one SERDES, the chip's own unless its file says
    /// otherwise; a copper board has none.
    #[test]
    fn a_board_has_one_serdes_or_a_phy() {
        assert_eq!(Board::default().serdes(), Some(Serdes::OnChip));
        assert_eq!(Board::copper().serdes(), None);
        let external = Board::external_serdes();
        assert_eq!(external.serdes(), Some(Serdes::External));
        let fibre = Board::default();
        assert_eq!((external.pci, external.memory), (fibre.pci, fibre.memory));

        let with = |board: &str, line: &str| {
            let error = Board::from_toml(&format!("{board}\n[fibre]\n{line}\n"));
            error.unwrap_err().to_string()
        };
        let error = with(COPPER_TOML, "serdes = \"external\"");
        assert!(error.contains("[phy] and [fibre]"), "{error}");
        let plain = EXTERNAL_SERDES_TOML.replacen("[fibre]", "[of-another-reader]", 1);
        for (line, named) in [
            ("serdes = \"outside\"", "outside"),
            ("loop = 1", "loop"),
            ("", "serdes"),
        ] {
            let error = with(&plain, line);
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn a_board_file_may_name_a_partner() {
        let with = |words: &str| {
            Board::from_toml(&format!("{COPPER_TOML}\n[wire]\npartner = \"{words}\"\n"))
        };
        let partner = with("silent 100-full").expect("good words").wire.partner;
        assert_eq!(Ok(partner), "100-full silent".parse());
        assert!(with("1000").unwrap_err().to_string().contains("\"1000\""));
        let text = COPPER_TOML.replacen("address = 1", "address = 0", 1);
        let error = Board::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains("phy.address"), "{error}");
    }

    #[test]
    fn a_board_file_may_have_a_boot_memory() {
        assert_eq!(Board::default().boot.code, None);
        let text =
            format!("{DEFAULT_TOML}\n[boot]\ncode = \"boot.bin\"\nrequire_key = \"mine.pub\"\n");
        let board = Board::from_toml(&text).expect("good words");
        assert_eq!(board.boot.code, Some(PathBuf::from("boot.bin")));
        assert_eq!(board.boot.require_key, Some(PathBuf::from("mine.pub")));
    }

    #[test]
    fn impossible_sizes_are_refused_with_the_key() {
        for (from, to, key) in [
            (
                "sram_bytes = 0x10_0000",
                "sram_bytes = 0x18_0000",
                "memory.sram_bytes",
            ),
            (
                "sram_bytes = 0x10_0000",
                "sram_bytes = 0x100_0000",
                "memory.sram_bytes",
            ),
            (
                "scratch_a_bytes = 0x4000",
                "scratch_a_bytes = 1",
                "memory.scratch_a_bytes",
            ),
            ("bytes = 0x4_0000 ", "bytes = 0x4_0001 ", "eeprom.bytes"),
            ("page_bytes = 256", "page_bytes = 100", "eeprom.page_bytes"),
            ("mhz = 66", "mhz = 50", "pci.mhz"),
            ("core_hz = 88_000_000", "core_hz = 0", "clock.core_hz"),
        ] {
            let text = DEFAULT_TOML.replacen(from, to, 1);
            assert_ne!(text, DEFAULT_TOML, "{from} is in the default file");
            let error = Board::from_toml(&text).unwrap_err().to_string();
            assert!(error.contains(key), "{error} names {key}");
        }
    }

    #[test]
    fn misspelled_keys_are_refused_and_foreign_tables_are_not() {
        let misspelled = DEFAULT_TOML.replacen("core_hz", "core_hertz", 1);
        assert!(matches!(
            Board::from_toml(&misspelled),
            Err(BoardError::Syntax(_))
        ));
        let foreign = format!("{DEFAULT_TOML}\n[of-another-reader]\nsram_lat = 2\n");
        assert_eq!(Board::from_toml(&foreign).unwrap(), Board::default());
    }
}
