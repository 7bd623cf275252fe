//! Selects the firmware: the variant, and the placement of its hot code and data.
//!
//! `cargo xtask --variant V --placement P COMMAND`, or the environment variables, apply to
//! everything that a command builds or runs.

use super::own::{self, Own};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::sync::OnceLock;

/// The environment variable of the variant, which the tests heed as well.
pub const VARIANT: &str = "TIGON_VARIANT";
/// The environment variable of the placement, which the firmware's build script heeds.
pub const PLACEMENT: &str = "TIGON_PLACEMENT";

/// The package with the variants for the chip.
const CHIP: &str = "tigon-firmware";

/// How the handlers are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// Every handler on CPU A.
    Uniprocessor,
    /// The handlers divided between CPU A and CPU B.
    #[default]
    Parallel,
    /// One that `cargo xtask new-variant` has made.
    Own(&'static Own),
}

impl Variant {
    /// Name of the binary and of the feature that builds it.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Uniprocessor => "uniprocessor",
            Variant::Parallel => "parallel",
            Variant::Own(own) => &own.name,
        }
    }

    /// The package of the binary.
    pub fn package(self) -> &'static str {
        match self {
            Variant::Own(own) if own.is_beyond() => "tigon-beyond",
            _ => CHIP,
        }
    }

    /// All that run on the chip: but for those for a board beyond it.
    pub fn for_chip() -> impl Iterator<Item = Variant> {
        let variants = Variant::value_variants().iter().copied();
        variants.filter(|variant| variant.package() == CHIP)
    }

    /// Whether the handlers are divided between both CPUs.
    pub fn is_parallel(self) -> bool {
        match self {
            Variant::Uniprocessor => false,
            Variant::Parallel => true,
            Variant::Own(own) => own.is_parallel(),
        }
    }
}

/// By hand, since the list is only known when it is read.
impl ValueEnum for Variant {
    fn value_variants<'a>() -> &'a [Variant] {
        static ALL: OnceLock<Vec<Variant>> = OnceLock::new();
        ALL.get_or_init(|| {
            let first = [Variant::Uniprocessor, Variant::Parallel];
            first
                .into_iter()
                .chain(own::beyond().iter().map(Variant::Own))
                .chain(own::all().iter().map(Variant::Own))
                .collect()
        })
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Variant::Uniprocessor => "Every handler on CPU A".to_owned(),
            Variant::Parallel => "The handlers divided between CPU A and CPU B".to_owned(),
            Variant::Own(own) if own.is_beyond() => {
                "For a simulated board with more CPUs".to_owned()
            }
            Variant::Own(own) => format!("Made from {}", own.from),
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

/// Where hot code and the handlers' state lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Placement {
    /// Both in the scratch pads
    #[default]
    Scratch,
    /// The code in SRAM
    SramCode,
    /// The state in SRAM
    SramData,
    /// Both in SRAM
    SramBoth,
}

impl Placement {
    /// Its name, as the command line has it.
    pub const fn name(self) -> &'static str {
        match self {
            Placement::Scratch => "scratch",
            Placement::SramCode => "sram-code",
            Placement::SramData => "sram-data",
            Placement::SramBoth => "sram-both",
        }
    }

    /// Whether hot code is in the scratch pads.
    pub const fn has_code_in_scratch(self) -> bool {
        matches!(self, Placement::Scratch | Placement::SramData)
    }
}

/// The name of the files of a firmware.
pub fn file_name(variant: Variant, placement: Placement) -> String {
    match placement {
        Placement::Scratch => variant.name().to_owned(),
        other => format!("{}-{}", variant.name(), other.name()),
    }
}

static CHOSEN: OnceLock<(Variant, Placement)> = OnceLock::new();

/// Takes the user's choice, before anything asks for it.
pub fn choose(variant: Variant, placement: Placement) {
    // A second choice within one process would be the first one's.
    let _ = CHOSEN.set((variant, placement));
}

/// The user's choice: by the command line, or by the environment, or the default. A word in
/// the environment that is no variant is for the command line to refuse.
pub fn chosen() -> (Variant, Placement) {
    *CHOSEN.get_or_init(|| (from_environment(VARIANT), from_environment(PLACEMENT)))
}

fn from_environment<T: ValueEnum + Default>(name: &str) -> T {
    std::env::var(name)
        .ok()
        .and_then(|word| T::from_str(&word, false).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for variant in Variant::value_variants() {
            assert_eq!(Variant::from_str(variant.name(), false), Ok(*variant));
        }
        for placement in Placement::value_variants() {
            assert_eq!(Placement::from_str(placement.name(), false), Ok(*placement));
        }
    }

    #[test]
    fn each_firmware_has_files_of_its_own() {
        let name = file_name(Variant::Parallel, Placement::Scratch);
        assert_eq!(name, "parallel");
        let name = file_name(Variant::Uniprocessor, Placement::SramBoth);
        assert_eq!(name, "uniprocessor-sram-both");
    }
}
