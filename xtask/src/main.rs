//! Every command that a developer of tigon-rs types.
#![forbid(unsafe_code)]
fn main() {}
