//! How LLVM makes the code of the variants with a system.
//!
//! A system's handlers run some kilobytes of code for each frame. For MIPS, LLVM leaves many delay
//! slots of it empty, and keeps constants on the stack, unless it is told not to. The plain variants
//! stay as they are: the golden tables compare them to the cycle.
//!
//! `-enable-ipra`, by which a function saves only registers that its callers need, would take another
//! 2 % off a frame. With it frames that are cut through fail, and `spine` does not answer.

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

/// The compiler's arguments for a binary; none for most.
pub fn arguments(binary: &str) -> Vec<String> {
    if !SYSTEMS.contains(&binary) {
        return Vec::new();
    }
    vec![format!("-Cllvm-args={}", ARGUMENTS.join(" "))]
}
