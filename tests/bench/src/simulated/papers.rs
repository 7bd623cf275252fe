//! The paper's published figures for the real card.
//!
//! Kim, Pai, Rixner: "Exploiting Task-level Concurrency in a Programmable Network Interface",
//! PPoPP 2003, section 6. Its figures are plots; this module has the numbers in the text, and
//! values that follow from the text by arithmetic (marked `derived`): the Ethernet limit where the
//! text says that a card reaches it, and a constant packet rate where it says that a curve falls
//! in proportion to the datagram size.

use serde::Serialize;
use tigon2_sim::workload::experiment::{Experiment, wire_limit};

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// Datagram bits both ways, in Mb/s.
    pub mbps: f64,
    /// The firmware or card that it is of.
    pub of: &'static str,
    /// Whether it was worked out from ratios in the text.
    pub derived: bool,
}

/// A published figure of a point, with the measurement by it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The figure.
    #[serde(flatten)]
    pub figure: Published,
    /// Measured by published.
    pub ratio: f64,
}

const fn said(of: &'static str, mbps: f64) -> Published {
    Published {
        mbps,
        of,
        derived: false,
    }
}

/// A rate of packets, or the wire's if that is less.
fn derived(of: &'static str, frames_per_s: f64, datagram: usize) -> Published {
    let rate = frames_per_s.min(wire_limit(datagram));
    Published {
        mbps: rate * datagram as f64 * 8.0 / 1e6,
        of,
        derived: true,
    }
}

/// What was published for an experiment and a size, the uniprocessor firmwares first; empty
/// if nothing was.
pub fn published(experiment: Experiment, datagram: usize) -> Vec<Published> {
    match experiment {
        Experiment::Send => send(datagram),
        Experiment::Receive => receive(datagram),
        Experiment::Bidirectional => bidirectional(datagram),
        // Only ratios between the cards were.
        Experiment::Ping => Vec::new(),
    }
}

/// PARALLEL is at the limit down to 800 bytes and up to 32 % above RELEASE and BSD, at 800;
/// these are at it down to 1000. Below, each has its constant rate.
fn send(datagram: usize) -> Vec<Published> {
    let parallel = wire_limit(800);
    let others = if datagram >= 1000 {
        wire_limit(datagram)
    } else {
        parallel / 1.32
    };
    let mut figures = vec![
        derived("RELEASE", others, datagram),
        derived("BSD", others, datagram),
        derived("PARALLEL", parallel, datagram),
    ];
    figures.extend(intel(datagram));
    figures
}

/// PARALLEL is at the limit down to 1000 bytes and up to 19 % above BSD, which is at it down
/// to 1200; RELEASE never is.
fn receive(datagram: usize) -> Vec<Published> {
    let parallel = wire_limit(1000);
    let bsd = if datagram >= 1200 {
        wire_limit(datagram)
    } else {
        parallel / 1.19
    };
    let mut figures = vec![
        derived("BSD", bsd, datagram),
        derived("PARALLEL", parallel, datagram),
    ];
    figures.extend(intel(datagram));
    figures
}

/// One way the Intel card is at the limit from 400 bytes on.
fn intel(datagram: usize) -> Option<Published> {
    (datagram >= 400).then(|| derived("Intel ASIC", f64::INFINITY, datagram))
}

/// PARALLEL carries 1 Gb/s at 600 bytes and below that its rate is constant; the others are
/// known at the ends of the range.
fn bidirectional(datagram: usize) -> Vec<Published> {
    /// 1 Gb/s at 600 bytes, both ways together.
    const PARALLEL: f64 = 1e9 / (600.0 * 8.0);
    let both = |of, rate| Published {
        mbps: rate * datagram as f64 * 8.0 / 1e6,
        of,
        derived: true,
    };
    match datagram {
        1472 => vec![
            said("RELEASE", 938.0),
            both("BSD", 1553e6 / 1.37 / (1472.0 * 8.0)),
            said("PARALLEL", 1553.0),
            said("Intel ASIC", 1882.0),
        ],
        18 => vec![
            both("RELEASE", PARALLEL / 2.57),
            both("BSD", PARALLEL / 2.46),
            both("PARALLEL", PARALLEL),
        ],
        600 => vec![said("PARALLEL", 1000.0)],
        _ if datagram < 600 => vec![both("PARALLEL", PARALLEL)],
        _ => Vec::new(),
    }
}

/// Figure 5: a handler's share of the time in the handlers of sent and received frames, in
/// percent from and to. RELEASE with everything in SRAM, 64-byte frames both ways.
pub fn figure_5(handler: &str) -> Option<(f64, f64)> {
    match handler {
        "SendDataReady" | "ReceiveComplete" => Some((30.0, 30.0)),
        "DmaReadComplete" => Some((14.0, 14.0)),
        // "Over twice as expensive" is DMA read complete.
        "DmaWriteComplete"
        | "Mailbox"
        | "SendBdReady"
        | "StandardReceiveBdReady"
        | "UpdateReceiveReturnProducer" => Some((4.0, 6.0)),
        "UpdateSendConsumer" => Some((0.6, 0.6)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(experiment: Experiment, datagram: usize, name: &str) -> f64 {
        published(experiment, datagram)
            .into_iter()
            .find(|figure| figure.of == name)
            .map_or(0.0, |figure| figure.mbps)
    }

    /// Section 6's prose, number by number.
    #[test]
    fn the_headline_figures_stand() {
        use Experiment::{Bidirectional, Receive, Send};
        let ratio =
            |experiment, size, name| of(experiment, size, "PARALLEL") / of(experiment, size, name);
        for (experiment, size, name, more) in [
            (Bidirectional, 1472, "RELEASE", 1.65),
            (Bidirectional, 1472, "BSD", 1.37),
            (Bidirectional, 18, "RELEASE", 2.57),
            (Bidirectional, 18, "BSD", 2.46),
            (Send, 800, "RELEASE", 1.32),
            (Send, 800, "BSD", 1.32),
            (Receive, 1000, "BSD", 1.19),
        ] {
            let found = ratio(experiment, size, name);
            assert!((found - more).abs() < 0.01, "{name}, {size}: {found}");
        }
        let limit = |size: usize| wire_limit(size) * size as f64 * 8.0 / 1e6;
        assert_eq!(of(Send, 1000, "BSD"), limit(1000));
        assert!(of(Send, 800, "BSD") < 0.8 * limit(800));
        assert_eq!(of(Receive, 1200, "BSD"), limit(1200));
        assert!(of(Receive, 1000, "BSD") < limit(1000));
        assert_eq!(of(Receive, 400, "Intel ASIC"), limit(400));
        assert_eq!(of(Receive, 1472, "RELEASE"), 0.0, "no figure was published");
        assert!(published(Experiment::Ping, 18).is_empty());
    }

    #[test]
    fn figure_5_is_complete() {
        let shares = [
            "SendDataReady",
            "ReceiveComplete",
            "DmaReadComplete",
            "DmaWriteComplete",
            "Mailbox",
            "SendBdReady",
            "StandardReceiveBdReady",
            "UpdateReceiveReturnProducer",
            "UpdateSendConsumer",
        ]
        .map(|name| figure_5(name).expect(name));
        let least: f64 = shares.iter().map(|share| share.0).sum();
        let most: f64 = shares.iter().map(|share| share.1).sum();
        assert!(least < 100.0 && most > 100.0, "{least} to {most}");
    }
}
