//! Explains each difference to the paper's uniprocessor firmwares in one sentence.

use super::point::Point;
use tigon2_sim::workload::experiment::Experiment;

/// What is compared with.
const UNIPROCESSOR: [&str; 2] = ["RELEASE", "BSD"];
/// Smaller differences than this are none: the search's nearness and the reading of the
/// paper's curves.
const EQUAL: f64 = 0.02;

/// A sentence for each published figure of a uniprocessor firmware.
pub fn sentences(points: &[Point]) -> Vec<String> {
    let mut sentences = Vec::new();
    for point in points {
        for compared in &point.paper {
            if UNIPROCESSOR.contains(&compared.figure.of) {
                sentences.push(format!(
                    "{}, {} B{}: {:.0} Mb/s, {} {} ({:.0}{}): {}.",
                    name(point.experiment),
                    point.datagram,
                    if point.bds == 1 { ", 1 BD" } else { "" },
                    point.mbps,
                    difference(compared.ratio),
                    compared.figure.of,
                    compared.figure.mbps,
                    if compared.figure.derived {
                        ", derived"
                    } else {
                        ""
                    },
                    why(point),
                ));
            }
        }
    }
    sentences
}

fn name(experiment: Experiment) -> &'static str {
    match experiment {
        Experiment::Send => "Send",
        Experiment::Receive => "Receive",
        Experiment::Bidirectional => "Both ways",
        Experiment::Ping => "Ping",
    }
}

fn difference(ratio: f64) -> String {
    let percent = (ratio - 1.0).abs() * 100.0;
    if (ratio - 1.0).abs() <= EQUAL {
        "as".to_owned()
    } else if ratio > 1.0 {
        format!("{percent:.0} % above")
    } else {
        format!("{percent:.0} % below")
    }
}

fn why(point: &Point) -> String {
    let instructions = point.cpu_a.instructions + point.cpu_b.instructions;
    let cycles = point.cpu_a.cycles + point.cpu_b.cycles;
    match point.bottleneck {
        "wire" => "the wire is full".to_owned(),
        "CPU A" | "CPU B" => format!(
            "{} is busy throughout, with {instructions:.0} instructions and {cycles:.0} cycles a \
             frame; the engines would carry {:.0} Mb/s",
            point.bottleneck, point.bound_mbps
        ),
        "host" => format!(
            "nothing on the card is busy throughout (CPU A {:.0} %), the host's batches are what \
             it waits for",
            point.cpu_a_busy * 100.0
        ),
        other => format!("the {other} is full, whatever the CPUs do"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_by_size_and_sign() {
        assert_eq!(difference(1.324), "32 % above");
        assert_eq!(difference(0.95), "5 % below");
        assert_eq!(difference(0.99), "as");
    }
}
