//! Hardware abstraction of the Tigon II for its firmware.
//!
//! Everything here is generic over [`Bus`], one CPU's view of the chip. On the chip that is
//! `Mmio`, which costs nothing; on a host it is anything that answers register and memory
//! accesses, such as the hardware model, so that plain `cargo test` can test drivers and handlers.
//!
//! | module | what | reference |
//! | --- | --- | --- |
//! | [`Bus`] | register and SRAM access | 2 |
//! | [`events`] | pending events, the other CPU's doorbell, the priority encoder | 3.2, 5 |
//! | [`resources`] | DMA channels and MAC queues as values with one owner | 6, 10 |
//! | [`assist`] | the two DMA descriptor rings | 6 |
//! | [`mac`] | MAC descriptor rings and the transmit buffer | 10 |
//! | [`semaphore`] | the hardware semaphore, also as `critical-section` | 4 |
//! | [`timer`] | the microsecond counter as an embedded-hal delay | 7 |
//! | [`eeprom`] | the serial EEPROM's bus as an embedded-hal I2C bus | 9 |
//! | [`led`] | the two LEDs as embedded-hal output pins | 9 |
//! | `log` (chip only), [`log_ring`] | defmt messages into rings in SRAM | |
//!
//! `unsafe` code is here (`mmio`, `log`, `memory`) and in the firmware's start code.
#![no_std]
#![cfg_attr(target_arch = "mips", feature(asm_experimental_arch))]

pub mod assist;
mod bus;
pub mod eeprom;
pub mod events;
pub mod led;
pub mod log_ring;
pub mod mac;
pub mod mdio;
pub mod resources;
pub mod schedule;
pub mod semaphore;
pub mod timer;

#[cfg(all(target_arch = "mips", feature = "log"))]
pub mod log;
#[cfg(target_arch = "mips")]
mod memory;
#[cfg(target_arch = "mips")]
mod mmio;

pub use bus::Bus;
#[cfg(target_arch = "mips")]
pub use mmio::Mmio;
