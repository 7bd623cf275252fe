//! `cargo xtask`: the door to every command of tigon-rs.
#![forbid(unsafe_code)]

fn main() {}
