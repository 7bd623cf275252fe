//! Boards with more CPUs than the chip, as engines for stories.

use crate::engine::{Engine, Sim};
use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;
use tigon_bench::simulated::cpus;
use tigon2_sim::SimTransport;

/// A firmware for such a board, and the board.
pub trait Partition {
    /// Name of the firmware.
    const FIRMWARE: &str;
    /// CPUs of the board.
    const CPUS: u32;
}

macro_rules! partitions {
    ($( $(#[$doc:meta])* $name:ident: $firmware:literal on $cpus:literal, )+) => { $(
        $(#[$doc])*
        pub struct $name;

        impl Partition for $name {
            const FIRMWARE: &str = $firmware;
            const CPUS: u32 = $cpus;
        }
    )+ };
}

partitions! {
    /// Each handler has one CPU.
    ByHandler: "by-handler" on 4,
    /// Two CPUs receive, and two send.
    ByPacketOnFour: "by-packet" on 4,
    /// Three CPUs receive, and three send.
    ByPacketOnSix: "by-packet" on 6,
}

/// The simulated board of a partition.
pub struct Beyond<P>(Sim, PhantomData<P>);

impl<P: Partition> Engine for Beyond<P> {
    type Transport = SimTransport;
    const IN_STEP: bool = true;

    fn start() -> (Self, SimTransport) {
        let (board, _) = cpus::board(P::CPUS).expect("a board");
        let (sim, transport) = Sim::of(board);
        (Beyond(sim, PhantomData), transport)
    }

    fn start_board(file: &Path) -> (Self, SimTransport) {
        let (sim, transport) = Sim::start_board(file);
        (Beyond(sim, PhantomData), transport)
    }

    fn firmware() -> Vec<u8> {
        cpus::image(P::FIRMWARE).expect("a firmware")
    }

    fn send(&mut self, frame: &[u8]) {
        self.0.send(frame);
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.0.receive()
    }

    fn receive_now(&mut self) -> Option<Vec<u8>> {
        self.0.receive_now()
    }

    fn pass(&mut self, time: Duration) {
        self.0.pass(time);
    }

    fn plug(&mut self, plugged: bool) {
        self.0.plug(plugged);
    }

    fn inject(&mut self, fault: &str) {
        self.0.inject(fault);
    }

    fn counts(&self) -> String {
        self.0.counts()
    }
}

/// Makes tests of stories on boards beyond the chip, beside those of
/// [`stories`](crate::stories).
#[macro_export]
macro_rules! stories_beyond {
    ($($story:ident),* $(,)?) => {
        mod by_handler {
            use $crate::beyond::{Beyond, ByHandler};
            $(#[test] fn $story() { super::$story::<Beyond<ByHandler>>() })*
        }
        mod by_packet_on_four {
            use $crate::beyond::{Beyond, ByPacketOnFour};
            $(#[test] fn $story() { super::$story::<Beyond<ByPacketOnFour>>() })*
        }
        mod by_packet_on_six {
            use $crate::beyond::{Beyond, ByPacketOnSix};
            $(#[test] fn $story() { super::$story::<Beyond<ByPacketOnSix>>() })*
        }
    };
}
