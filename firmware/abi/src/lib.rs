//! What the AceNIC host driver and the firmware agree on.
#![cfg_attr(not(test), no_std)]
