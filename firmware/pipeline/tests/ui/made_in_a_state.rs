//! Firmware that makes a machine in a state other than the first.

use frame_pipeline::Machine;
use frame_pipeline::send::{Send, State};

fn main() {
    let _ = Machine::<Send> {
        state: State::Watched as u32,
        definition: core::marker::PhantomData,
    };
}
