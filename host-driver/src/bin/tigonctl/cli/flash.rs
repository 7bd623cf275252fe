//! The command line of `flash`.

use std::path::PathBuf;

use boot_slots::{BoardId, Slot};
use clap::{Args, Subcommand};

pub const EXAMPLE: &str = "Examples:\n  \
    tigonctl --socket card.sock flash install parallel.12ae-0001.flash.bin\n  \
    tigonctl flash --eeprom card.eeprom info";

/// Options of `flash`.
#[derive(Debug, Args)]
pub struct FlashOptions {
    /// The file that keeps the EEPROM of an emulated board, in place of a card's; it is
    /// made if it is not there.
    #[arg(long, value_name = "FILE")]
    pub eeprom: Option<PathBuf>,
    /// The board that the file belongs to: its PCI ids, or a board file, which may
    /// name the key that images must be signed with.
    #[arg(long, value_name = "IDS|FILE", value_parser = board, default_value = "12ae:0001")]
    pub board: BoardChoice,
    /// Take only images signed with this public key; the development key is refused.
    #[arg(long, value_name = "FILE")]
    pub require_key: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub action: FlashAction,
}

/// What to do with an EEPROM.
#[derive(Debug, Subcommand)]
pub enum FlashAction {
    /// Say what is in both slots.
    Info,
    /// Install an image; it is started on trial until it is confirmed.
    Install {
        /// The image, as the build makes it to be flashed.
        image: PathBuf,
        /// The slot; else the one that is not started now.
        #[arg(long, value_name = "SLOT", value_parser = slot)]
        slot: Option<Slot>,
        /// Confirm it at once, without trial boots.
        #[arg(long)]
        confirmed: bool,
        /// Take it also if it is older: its rollback counter is lower than the card's.
        #[arg(long)]
        allow_downgrade: bool,
    },
    /// Read images and judge them: header, CRC-32, signature.
    Verify {
        /// The slot; both, if not given.
        #[arg(long, value_name = "SLOT", value_parser = slot)]
        slot: Option<Slot>,
    },
    /// Write everything in the EEPROM to a file.
    Backup {
        /// The file.
        file: PathBuf,
    },
    /// Put a backup back, but for the manufacturing data.
    Restore {
        /// The file.
        file: PathBuf,
        /// Take it also if it is older: its rollback counter is lower than the card's.
        #[arg(long)]
        allow_downgrade: bool,
    },
    /// Confirm an image by hand.
    Confirm {
        /// The slot.
        #[arg(value_parser = slot)]
        slot: Slot,
    },
    /// Let another slot be tried first.
    Prefer {
        /// The slot.
        #[arg(value_parser = slot)]
        slot: Slot,
        /// Take it also if it is older: its rollback counter is lower than the card's.
        #[arg(long)]
        allow_downgrade: bool,
    },
}

fn slot(text: &str) -> Result<Slot, String> {
    let slot = text.parse().ok().and_then(Slot::from_index);
    slot.ok_or_else(|| format!("{text} is no slot: there are 0 and 1"))
}

/// How the command line names a board.
#[derive(Clone, Debug)]
pub enum BoardChoice {
    /// By its PCI ids.
    Ids(BoardId),
    /// By its board file.
    File(PathBuf),
}

/// A board as its PCI ids, such as 12ae:0001, or as a file, such as board.toml.
fn board(text: &str) -> Result<BoardChoice, String> {
    let wrong = || {
        format!(
            "{text} is no board: its PCI ids are meant, such as 12ae:0001, or a file such as board.toml"
        )
    };
    if text.contains(['/', '.']) {
        return Ok(BoardChoice::File(text.into()));
    }
    let (vendor, device) = text.split_once(':').ok_or_else(wrong)?;
    let number = |digits| u16::from_str_radix(digits, 16).map_err(|_| wrong());
    Ok(BoardChoice::Ids(BoardId {
        vendor: number(vendor)?,
        device: number(device)?,
    }))
}
