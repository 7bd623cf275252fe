//! The boot code as the boot memory holds it.
//!
//! All code is in the library; its `start` module holds the reset entry.
#![no_std]
#![no_main]

use tigon_boot as _;
