//! The build id of a firmware: the linker's note in its ELF file and on the card.

use host_interface::log::BUILD_ID_BYTES;
use object::Object;

use super::LogError;

/// Identifies one build of a firmware.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BuildId(pub [u8; BUILD_ID_BYTES]);

impl BuildId {
    /// The build id of an ELF file.
    ///
    /// # Errors
    /// [`LogError::NoBuildId`] if the file has none, or one of another length.
    pub fn of_elf(file: &object::File<'_>) -> Result<Self, LogError> {
        let id = file.build_id().ok().flatten();
        let id = id.and_then(|id| id.try_into().ok());
        id.map(BuildId).ok_or(LogError::NoBuildId)
    }

    /// Checks that an ELF file of this build matches the firmware on a card.
    ///
    /// # Errors
    /// [`LogError::WrongBuild`] if it does not.
    pub fn check(self, card: BuildId) -> Result<(), LogError> {
        if self == card {
            return Ok(());
        }
        Err(LogError::WrongBuild { elf: self, card })
    }
}

impl std::fmt::Display for BuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for BuildId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut id = [0; BUILD_ID_BYTES];
        for (index, byte) in id.iter_mut().enumerate() {
            let digits = text.get(2 * index..2 * index + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16)?;
        }
        Ok(BuildId(id))
    }
}
