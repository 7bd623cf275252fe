//! Validates a command's arguments before anything is installed or built.
//!
//! A typing error must not cost the minutes of a first build. [`crate::firmware::file::judge`]
//! validates firmware images, and [`crate::net::namespace::privileged`] the privilege for Linux'
//! own traffic.

use anyhow::{Context, Result, ensure};
use host_driver::capture::FrameReader;
use host_driver::transport::vfio::PciAddress;
use std::path::{Path, PathBuf};
use tigon2_sim::timing::Parameters;

/// Whether a file can be made at `path`: its folder is there, and it is no folder itself.
///
/// # Errors
/// One line that names what is missing.
pub fn can_be_made(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    ensure!(folder.is_dir(), "there is no folder {}", folder.display());
    ensure!(!path.is_dir(), "{} is a folder", path.display());
    ensure!(path.file_name().is_some(), "{} is no file", path.display());
    Ok(())
}

/// The same where the argument was given.
///
/// # Errors
/// As [`can_be_made`].
pub fn can_be_made_if_given(path: Option<&PathBuf>) -> Result<()> {
    path.map_or(Ok(()), |path| can_be_made(path))
}

/// Whether a capture can be read from `input` and one written to `output`.
///
/// # Errors
/// What is wrong with either file.
pub fn captures(input: &Path, output: &Path) -> Result<()> {
    FrameReader::open(input)?;
    can_be_made(output)
}

/// Whether `board` has a timing profile of this name.
///
/// # Errors
/// The names that there are, or what is wrong with the profile.
pub fn profile(board: &str, name: &str) -> Result<()> {
    Parameters::from_toml(board, name).map(drop)?;
    Ok(())
}

/// Whether a process serves a card at this socket, or could.
///
/// # Errors
/// When there is nothing, or something else.
pub fn socket(path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let data = std::fs::metadata(path)
        .with_context(|| format!("there is no card at {}", path.display()))?;
    let is_one = data.file_type().is_socket();
    ensure!(is_one, "{} is no socket of a card", path.display());
    Ok(())
}

/// Whether this machine has a PCI function of this address.
///
/// # Errors
/// When it has not, or that is no address.
pub fn pci(address: &str) -> Result<()> {
    let parsed: PciAddress = address.parse().map_err(anyhow::Error::msg)?;
    let function = Path::new("/sys/bus/pci/devices").join(parsed.to_string());
    ensure!(function.exists(), "{parsed}: no such PCI function");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_can_be_made_where_its_folder_is() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(can_be_made(Path::new("card.eeprom")).is_ok());
        assert!(can_be_made(&folder.path().join("card.eeprom")).is_ok());
        let error = can_be_made(&folder.path().join("none/card.eeprom"));
        let error = error.expect_err("no folder").to_string();
        assert!(error.starts_with("there is no folder "), "{error}");
        let error = can_be_made(folder.path()).expect_err("a folder");
        assert!(error.to_string().ends_with(" is a folder"), "{error}");
    }

    #[test]
    fn a_profile_that_is_none_is_named() {
        let board = crate::paths::board_file().expect("the board file");
        assert!(profile(&board, "default").is_ok());
        let error = profile(&board, "nope").expect_err("no profile").to_string();
        assert!(error.contains("nope"), "{error}");
    }

    #[test]
    fn a_card_is_at_a_socket_or_at_an_address() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("card.sock");
        assert!(socket(&path).is_err());
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        assert!(socket(&path).is_ok());
        assert!(socket(Path::new("/dev/null")).is_err());
        assert!(pci("nonsense").is_err());
        assert!(pci("ffff:ff:1f.7").is_err());
    }
}
