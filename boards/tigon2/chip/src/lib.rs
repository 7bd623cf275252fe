//! The Tigon II chip as data: memory map, registers, events, descriptors.
#![cfg_attr(not(test), no_std)]
