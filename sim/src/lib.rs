//! Runs the firmware's ELF on both CPUs of the card, deterministic and without QEMU.
