//! An event of another machine.

use frame_pipeline::{Machine, World};
use frame_pipeline::{recv, send};

fn deliver<W: World<send::Send>>(machine: &mut Machine<send::Send>, world: &mut W) {
    machine.step(recv::Event::Begun, world);
}

fn main() {}
