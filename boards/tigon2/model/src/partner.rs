//! The link partner: the device at the other end of the cable.
//!
//! Board files and QEMU's monitor describe a partner in words:
//!
//! ```
//! # use tigon2_model::Partner;
//! let switch: Partner = "100-full 100-half 10-full 10-half pause".parse()?;
//! let old: Partner = "silent 10-half".parse()?;
//! assert!(switch.negotiates && !old.negotiates);
//! # Ok::<(), tigon2_model::PartnerError>(())
//! ```

use serde::Deserialize;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use thiserror::Error;
use tigon2_chip::mac::config_word;
use tigon2_chip::phy::{PhyMode, ability, gigabit_status};

/// An unknown word in the description of a partner.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "partner: {word:?} is none of 1000-full, 1000-half, 100-full, 100-half, 10-full, 10-half, \
     pause, asymmetric-pause, silent"
)]
pub struct PartnerError {
    word: String,
}

/// A set of [`PhyMode`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes(u8);

impl Modes {
    /// All of them.
    pub const ALL: Modes = Modes(0b1110_1110);

    /// The set with one more mode.
    #[must_use]
    pub const fn with(self, mode: PhyMode) -> Modes {
        Modes(self.0 | 1 << mode as u8)
    }

    /// Whether the set contains a mode.
    pub const fn has(self, mode: PhyMode) -> bool {
        self.0 & 1 << mode as u8 != 0
    }

    /// The union of two sets.
    #[must_use]
    pub const fn or(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    /// The intersection of two sets.
    #[must_use]
    pub const fn and(self, other: Modes) -> Modes {
        Modes(self.0 & other.0)
    }

    /// The best mode: fast before slow, full before half duplex.
    pub fn best(self) -> Option<PhyMode> {
        PhyMode::ALL.into_iter().find(|mode| self.has(*mode))
    }

    /// The best mode of a speed.
    pub fn best_at(self, megabits: u32) -> Option<PhyMode> {
        let mut modes = PhyMode::ALL.into_iter();
        modes.find(|mode| mode.megabits() == megabits && self.has(*mode))
    }

    /// The PHY register bits of the modes in the set.
    pub fn bits(self, table: &[(PhyMode, u16)]) -> u16 {
        let mine = table.iter().filter(|(mode, _)| self.has(*mode));
        mine.fold(0, |bits, (_, bit)| bits | bit)
    }

    /// The modes whose bits are set in a PHY register.
    pub fn from_bits(value: u16, table: &[(PhyMode, u16)]) -> Modes {
        let mine = table.iter().filter(|(_, bit)| value & bit != 0);
        mine.fold(Modes::default(), |modes, (mode, _)| modes.with(*mode))
    }
}

/// Bits of the modes in registers 4 and 5 of a PHY.
pub const ABILITY_BITS: [(PhyMode, u16); 4] = [
    (PhyMode::Half10, ability::HALF_10),
    (PhyMode::Full10, ability::FULL_10),
    (PhyMode::Half100, ability::HALF_100),
    (PhyMode::Full100, ability::FULL_100),
];

/// Bits of the partner's modes in register 10 of a PHY.
pub const GIGABIT_STATUS_BITS: [(PhyMode, u16); 2] = [
    (PhyMode::Half1000, gigabit_status::HALF),
    (PhyMode::Full1000, gigabit_status::FULL),
];

/// A link partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Partner {
    /// Whether it auto-negotiates; otherwise it runs at its best mode.
    pub negotiates: bool,
    /// Its modes. On fibre only 1000 Mb/s matters.
    pub modes: Modes,
    /// Whether it supports symmetric pause, so that it waits for a card that sends pause frames.
    pub pause: bool,
    /// Whether it supports asymmetric pause.
    pub asymmetric_pause: bool,
}

impl Default for Partner {
    /// A partner that negotiates all modes, with symmetric pause (11: 0xA040 on fibre).
    fn default() -> Self {
        Partner {
            negotiates: true,
            modes: Modes::ALL,
            pause: true,
            asymmetric_pause: false,
        }
    }
}

impl Partner {
    /// Its configuration word on fibre, in the byte order of `R[224]`: its best duplex, its pause
    /// abilities, acknowledged (11).
    pub fn config_word(&self) -> u32 {
        let duplex = match self.modes.best_at(1000) {
            Some(PhyMode::Full1000) => config_word::FULL_DUPLEX,
            Some(_) => config_word::HALF_DUPLEX,
            None => 0,
        };
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        duplex
            | flag(self.pause, config_word::PAUSE)
            | flag(self.asymmetric_pause, config_word::ASYMMETRIC_PAUSE)
            | config_word::ACKNOWLEDGE
    }

    /// Its abilities in register 5 of a copper PHY.
    pub fn copper_ability(&self) -> u16 {
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        ability::SELECTOR
            | ability::ACKNOWLEDGE
            | self.modes.bits(&ABILITY_BITS)
            | flag(self.pause, ability::PAUSE)
            | flag(self.asymmetric_pause, ability::ASYMMETRIC_PAUSE)
    }
}

const fn name(mode: PhyMode) -> &'static str {
    match mode {
        PhyMode::Full1000 => "1000-full",
        PhyMode::Half1000 => "1000-half",
        PhyMode::Full100 => "100-full",
        PhyMode::Half100 => "100-half",
        PhyMode::Full10 => "10-full",
        PhyMode::Half10 => "10-half",
    }
}

impl FromStr for Partner {
    type Err = PartnerError;

    fn from_str(text: &str) -> Result<Self, PartnerError> {
        let mut partner = Partner {
            negotiates: true,
            modes: Modes::default(),
            pause: false,
            asymmetric_pause: false,
        };
        for word in text.split_whitespace() {
            if let Some(mode) = PhyMode::ALL.into_iter().find(|mode| name(*mode) == word) {
                partner.modes = partner.modes.with(mode);
                continue;
            }
            match word {
                "pause" => partner.pause = true,
                "asymmetric-pause" => partner.asymmetric_pause = true,
                "silent" => partner.negotiates = false,
                _ => {
                    let word = word.to_owned();
                    return Err(PartnerError { word });
                }
            }
        }
        Ok(partner)
    }
}

impl TryFrom<String> for Partner {
    type Error = PartnerError;

    fn try_from(text: String) -> Result<Self, PartnerError> {
        text.parse()
    }
}

impl Display for Partner {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let modes = PhyMode::ALL
            .into_iter()
            .filter(|mode| self.modes.has(*mode));
        let flags = [
            (self.pause, "pause"),
            (self.asymmetric_pause, "asymmetric-pause"),
            (!self.negotiates, "silent"),
        ];
        let flags = flags
            .into_iter()
            .filter_map(|(set, word)| set.then_some(word));
        let words: Vec<&str> = modes.map(name).chain(flags).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_written_in_words() {
        let all = "1000-full 1000-half 100-full 100-half 10-full 10-half pause";
        assert_eq!(all.parse(), Ok(Partner::default()));
        assert_eq!(Partner::default().to_string(), all);
        let old = "100-half silent asymmetric-pause".parse::<Partner>();
        assert_eq!(
            old.as_ref().map(ToString::to_string).as_deref(),
            Ok("100-half asymmetric-pause silent")
        );
        let error = "100-full fast".parse::<Partner>().unwrap_err();
        assert!(error.to_string().contains("\"fast\""));
    }

    /// Reference 11: an ideal fibre partner answers 0xA040 (C).
    #[test]
    fn the_default_partner_answers_a040() {
        assert_eq!(Partner::default().config_word(), 0xA040);
        let half: Partner = "1000-half asymmetric-pause".parse().expect("good words");
        assert_eq!(half.config_word(), 0x4041);
    }

    #[test]
    fn the_best_mode_is_the_fastest() {
        let modes = Modes::default()
            .with(PhyMode::Half100)
            .with(PhyMode::Full10);
        assert_eq!(modes.best(), Some(PhyMode::Half100));
        assert_eq!(modes.best_at(10), Some(PhyMode::Full10));
        assert_eq!(modes.best_at(1000), None);
        assert!(PhyMode::ALL.into_iter().all(|mode| Modes::ALL.has(mode)));
        assert_eq!(modes.bits(&ABILITY_BITS), 0x00C0);
        assert_eq!(Modes::from_bits(0x0CC1, &ABILITY_BITS), modes);
    }
}
