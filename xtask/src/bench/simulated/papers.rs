//! What the paper published for the real card.
//!
//! Kim, Pai, Rixner: "Exploiting Task-level Concurrency in a Programmable Network
//! Interface", PPoPP 2003, section 6. Its figures are plots; what stands here is what the
//! text says in numbers, and what follows from it by arithmetic (marked `derived`).

use serde::Serialize;
use tigon2_sim::workload::experiment::Experiment;

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

const fn said(of: &'static str, mbps: f64) -> Published {
    Published {
        mbps,
        of,
        derived: false,
    }
}

const fn derived(of: &'static str, mbps: f64) -> Published {
    Published {
        mbps,
        of,
        derived: true,
    }
}

/// Frames a second of a datagram size as Mb/s.
const fn rate(frames_per_s: f64, datagram: f64) -> f64 {
    frames_per_s * datagram * 8.0 / 1e6
}

/// By experiment and datagram size: the uniprocessor firmwares of the paper first.
const FIGURES: &[(Experiment, usize, &[Published])] = &[
    (
        Experiment::Bidirectional,
        1472,
        &[
            said("RELEASE", 938.0),
            derived("BSD", 1134.0),
            said("PARALLEL", 1553.0),
            said("Intel ASIC", 1882.0),
        ],
    ),
    (
        Experiment::Bidirectional,
        18,
        &[
            derived("RELEASE", rate(81_000.0, 18.0)),
            derived("BSD", rate(84_700.0, 18.0)),
            derived("PARALLEL", rate(208_000.0, 18.0)),
        ],
    ),
    (Experiment::Bidirectional, 600, &[said("PARALLEL", 1000.0)]),
    (
        Experiment::Send,
        800,
        &[
            derived("BSD", rate(109_300.0, 800.0)),
            derived("PARALLEL", rate(144_300.0, 800.0)),
        ],
    ),
    (
        Experiment::Send,
        1000,
        &[derived("BSD", rate(117_300.0, 1000.0))],
    ),
    (
        Experiment::Receive,
        1000,
        &[
            derived("BSD", rate(98_600.0, 1000.0)),
            derived("PARALLEL", rate(117_300.0, 1000.0)),
        ],
    ),
    (
        Experiment::Receive,
        1200,
        &[derived("BSD", rate(98_700.0, 1200.0))],
    ),
];

/// What was published for an experiment and a size; empty if nothing was.
pub fn published(experiment: Experiment, datagram: usize) -> &'static [Published] {
    FIGURES
        .iter()
        .find(|(kind, size, _)| *kind == experiment && *size == datagram)
        .map_or(&[], |(_, _, figures)| figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_figures_stand() {
        let both = published(Experiment::Bidirectional, 1472);
        assert_eq!((both[0].of, both[0].mbps), ("RELEASE", 938.0));
        assert!((both[2].mbps / both[0].mbps - 1.65).abs() < 0.01, "+65 %");
        let small = published(Experiment::Bidirectional, 18);
        assert!(
            (small[2].mbps / small[0].mbps - 2.57).abs() < 0.02,
            "+157 %"
        );
        assert!(published(Experiment::Ping, 18).is_empty());
    }
}
