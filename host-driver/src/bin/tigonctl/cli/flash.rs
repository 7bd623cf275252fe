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
    /// The file of an emulated board's EEPROM, in place of a card's; it is created if it does not
    /// exist.
    #[arg(long, value_name = "FILE")]
    pub eeprom: Option<PathBuf>,
    /// The board of the file: its PCI ids, or a board file, which may name the key that must have
    /// signed images.
    #[arg(long, value_name = "IDS|FILE", value_parser = board, default_value = "12ae:0001")]
    pub board: BoardChoice,
    /// Accept only images signed with this public key; the development key is rejected.
    #[arg(long, value_name = "FILE")]
    pub require_key: Option<PathBuf>,
    /// The action.
    #[command(subcommand)]
    pub action: FlashAction,
}

/// An action on an EEPROM.
#[derive(Debug, Subcommand)]
pub enum FlashAction {
    /// Print the content of both slots.
    Info,
    /// Install an image; it starts on trial until it is confirmed.
    Install {
        /// The image, in the format that the build makes for flashing.
        image: PathBuf,
        /// The slot; by default the one that does not start now.
        #[arg(long, value_name = "SLOT", value_parser = slot)]
        slot: Option<Slot>,
        /// Confirm it at once, without trial boots.
        #[arg(long)]
        confirmed: bool,
        /// Accept an older image: one with a lower rollback counter than the card's.
        #[arg(long)]
        allow_downgrade: bool,
    },
    /// Read images and check them: header, CRC-32, signature.
    Verify {
        /// The slot; both by default.
        #[arg(long, value_name = "SLOT", value_parser = slot)]
        slot: Option<Slot>,
    },
    /// Write the whole content of the EEPROM to a file.
    Backup {
        /// The file.
        file: PathBuf,
    },
    /// Restore a backup, except the manufacturing data.
    Restore {
        /// The file.
        file: PathBuf,
        /// Accept an older image: one with a lower rollback counter than the card's.
        #[arg(long)]
        allow_downgrade: bool,
    },
    /// Confirm an image manually.
    Confirm {
        /// The slot.
        #[arg(value_parser = slot)]
        slot: Slot,
    },
    /// Prefer a slot, so that it is tried first.
    Prefer {
        /// The slot.
        #[arg(value_parser = slot)]
        slot: Slot,
        /// Accept an older image: one with a lower rollback counter than the card's.
        #[arg(long)]
        allow_downgrade: bool,
    },
}

fn slot(text: &str) -> Result<Slot, String> {
    let slot = text.parse().ok().and_then(Slot::from_index);
    slot.ok_or_else(|| format!("{text} is no slot: there are 0 and 1"))
}

/// A board on the command line.
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
