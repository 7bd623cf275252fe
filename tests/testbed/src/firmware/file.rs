//! `--firmware FILE`: an image in the drivers' load format replaces ours.

use super::FirmwareArtifacts;
use anyhow::{Context, Result};
use host_interface::image::Image;
use std::path::{Path, PathBuf};

/// Reads an image and judges it as a driver would.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path)
        .with_context(|| format!("cannot read the firmware {}", path.display()))?;
    Image::parse(&bytes).with_context(|| format!("{} is no firmware image", path.display()))?;
    Ok(bytes)
}

/// Judges the user's image, if there is one. To be called before anything that
/// takes time.
///
/// # Errors
/// As [`read`].
pub fn judge(path: Option<&PathBuf>) -> Result<()> {
    path.map_or(Ok(()), |path| read(path).map(drop))
}

impl FirmwareArtifacts {
    /// The same with the user's image in place of ours, if there is one.
    pub fn or_file(mut self, path: Option<&PathBuf>) -> FirmwareArtifacts {
        if let Some(path) = path {
            self.tg2.clone_from(path);
        }
        self
    }

    /// The image that a driver loads.
    ///
    /// # Errors
    /// As [`read`].
    pub fn image(&self) -> Result<Vec<u8>> {
        read(&self.tg2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tg2.bin");
        std::fs::write(&path, bytes).expect("a file");
        match read(&path) {
            Ok(_) => "good".into(),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn an_image_of_any_origin_is_taken() {
        let mut image = vec![12, 4, 11, 0];
        image.extend([0, 0, 0x40, 0, 0, 0, 0x40, 0]);
        image.extend([0; 16]);
        assert_eq!(judged(&image), "good");
    }

    #[test]
    fn what_is_no_image_is_named_with_the_reason() {
        for (bytes, reason) in [
            (&b""[..], "too short"),
            (&b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..], "address"),
            (&[12, 4, 11, 0, 0, 0, 0x40, 0, 0, 0, 0x40, 0][..], "empty"),
        ] {
            let said = judged(bytes);
            assert!(said.contains("tg2.bin is no firmware image"), "{said}");
            assert!(said.contains(reason), "{said}");
        }
        let absent = read(Path::new("/nonexistent/tg2.bin")).expect_err("no file");
        assert!(absent.to_string().contains("/nonexistent/tg2.bin"));
    }
}
