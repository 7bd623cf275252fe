//! `cargo xtask flash`: builds the firmware, signs it, and lets `tigonctl flash` install it.

use anyhow::{Context, Result, ensure};
use host_driver::flash::BoardFile;
use host_driver::flash::signature::{SIGNING_KEY_VARIABLE, TrustedKey};
use std::fs::File;
use std::path::PathBuf;
use testbed::firmware::{self, FirmwareOptions};
use testbed::setup::{self, Need};
use testbed::{judge, paths, process};
use tigon2_model::Board;

/// The image, and the card to install it on.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The file that keeps the EEPROM of an emulated board; created if it is missing
    #[arg(long, value_name = "FILE", group = "place")]
    pub eeprom: Option<PathBuf>,
    /// Socket of an emulated card (vfio-user)
    #[arg(long, value_name = "PATH", group = "place")]
    pub socket: Option<PathBuf>,
    /// PCI address of a card in this machine, bound to vfio-pci
    #[arg(long, value_name = "ADDRESS", group = "place")]
    pub pci: Option<String>,
    /// Board description [default: the fibre card]
    #[arg(long, value_name = "FILE")]
    pub board: Option<PathBuf>,
    /// Install an image that was built earlier instead of building one
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Slot [default: the one that is not active]
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub slot: Option<u8>,
    /// Confirm the image at once, without trial boots
    #[arg(long)]
    pub confirmed: bool,
    /// Accept only an image signed with this public key; refuse the development key
    #[arg(long, value_name = "FILE")]
    pub require_key: Option<PathBuf>,
    /// Accept an older image, whose rollback counter is lower than the card's
    #[arg(long)]
    pub allow_downgrade: bool,
}

/// Builds and installs.
///
/// # Errors
/// When there is nothing to install it in, the build fails, or `tigonctl` refuses.
pub fn run(arguments: &Arguments) -> Result<()> {
    // Before anything that takes time.
    ensure!(
        arguments.eeprom.is_some() || arguments.socket.is_some() || arguments.pci.is_some(),
        "where to? --eeprom FILE of an emulated board, or --socket PATH or --pci ADDRESS of a card"
    );
    judge::can_be_made_if_given(arguments.eeprom.as_ref())?;
    if let Some(socket) = &arguments.socket {
        judge::socket(socket)?;
    }
    if let Some(address) = &arguments.pci {
        judge::pci(address)?;
    }
    if let Some(image) = &arguments.image {
        File::open(image).with_context(|| format!("cannot read {}", image.display()))?;
    }
    let board = match &arguments.board {
        None => Board::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Board::from_toml(&text).with_context(|| path.display().to_string())?
        }
    };
    let required = required_key(arguments)?;
    let image = match &arguments.image {
        Some(image) => image.clone(),
        None => {
            if let Some(required) = required {
                let signer = firmware::flash::signer()?.trusted();
                ensure!(
                    signer == required,
                    "the {required} is required, this build would be signed with the {signer}: \
                     name the secret half with {SIGNING_KEY_VARIABLE}=FILE"
                );
            }
            setup::ensure(&[Need::Firmware])?;
            let built = firmware::build(FirmwareOptions {
                quiet: false,
                ..FirmwareOptions::default()
            })?;
            firmware::boot::build(false)?;
            firmware::flash::image(&built, &board)?
        }
    };
    println!("{}", image.display());
    let id = firmware::flash::board_id(&board);
    let mut command = process::cargo();
    command
        .current_dir(paths::root())
        .args(["run", "--release", "--quiet", "--package", "host-driver"])
        .args(["--bin", "tigonctl", "--"]);
    // Cargo runs it in the project's folder.
    let place = |path: &PathBuf| std::path::absolute(path);
    if let Some(socket) = &arguments.socket {
        command.arg("--socket").arg(place(socket)?);
    }
    if let Some(address) = &arguments.pci {
        command.args(["--pci", address]);
    }
    command.args(["flash", "--board"]);
    match &arguments.board {
        Some(file) => command.arg(place(file)?),
        None => command.arg(id.to_string()),
    };
    if let Some(key) = &arguments.require_key {
        command.arg("--require-key").arg(place(key)?);
    }
    if let Some(eeprom) = &arguments.eeprom {
        command.arg("--eeprom").arg(place(eeprom)?);
    }
    command.arg("install").arg(place(&image)?);
    if let Some(slot) = arguments.slot {
        command.args(["--slot", &slot.to_string()]);
    }
    if arguments.confirmed {
        command.arg("--confirmed");
    }
    if arguments.allow_downgrade {
        command.arg("--allow-downgrade");
    }
    process::run(&mut command)
}

/// The key that the command line or else the board file requires.
fn required_key(arguments: &Arguments) -> Result<Option<TrustedKey>> {
    let board = arguments.board.as_deref().map(BoardFile::read);
    let of_board = board.transpose()?.and_then(|board| board.require_key);
    let path = arguments.require_key.clone().or(of_board);
    Ok(path.map(|path| TrustedKey::required(&path)).transpose()?)
}
