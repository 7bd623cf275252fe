//! Firmware that sets a machine's state without a row.

use frame_pipeline::Machine;
use frame_pipeline::send::{Send, State};

fn main() {
    let mut send = Machine::<Send>::new();
    send.state = State::FineGrainedSend as u8;
}
