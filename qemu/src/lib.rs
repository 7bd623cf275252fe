//! The hardware model as a library that QEMU's machine tigon2 loads.
