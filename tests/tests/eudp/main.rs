//! Endpoints for datagrams: E-UDP, on the simulator with the real firmware.

mod card;
mod faults;
mod receiving;
mod sending;
