//! How LLVM makes the code of the variants with a system.
//!
//! A system's handlers run some kilobytes of code for each frame. For MIPS, LLVM leaves many delay
//! slots of it empty, and keeps constants on the stack, unless it is told not to. The plain variants
//! stay as they are: the golden tables compare them to the cycle.
//!
//! `-enable-ipra`, by which a function saves only registers that its callers need, would take another
//! 2 % off a frame. With it frames that are cut through fail, and `spine` does not answer.

use super::choice::Variant;

/// The variants with a system.
const SYSTEMS: [&str; 2] = ["eudp", "spine"];

/// What LLVM does for them, and what that saves.
const ARGUMENTS: [&str; 4] = [
    // Constants are made where they are used: loops here turn once or twice, and those that are made
    // in front of one lie on the stack, as no register is left.
    "-disable-machine-licm",
    // A delay slot takes an instruction of the branch's target, where none from in front fits.
    "-disable-mips-df-succbb-search=false",
    // Loads go in front of what can be done meanwhile.
    "-post-RA-scheduler=true",
    // A call at the end of a function is a jump.
    "-mips-tail-calls",
];

/// The compiler's argument for a variant's binary; none for plain ones.
pub fn argument(variant: Variant) -> Option<String> {
    has_system(variant).then(|| format!("-Cllvm-args={}", ARGUMENTS.join(" ")))
}

/// Whether a variant has a system, or is made from one that has: its code fits the pads only so.
fn has_system(variant: Variant) -> bool {
    let Variant::Own(own) = variant else {
        return false;
    };
    let mut systems = SYSTEMS.iter();
    systems.any(|system| own.name == *system || own.is_made_from(system))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firmware::own::Own;
    use clap::ValueEnum;
    use std::sync::OnceLock;

    #[test]
    fn what_is_made_from_a_system_is_made_as_it_is() {
        static MADE: OnceLock<Own> = OnceLock::new();
        let mine = MADE.get_or_init(|| Own {
            name: "mine".into(),
            from: "eudp".into(),
        });
        assert!(has_system(Variant::Own(mine)));
        for variant in Variant::value_variants() {
            let is_system = SYSTEMS.contains(&variant.name());
            assert_eq!(argument(*variant).is_some(), is_system, "{variant:?}");
        }
    }
}
