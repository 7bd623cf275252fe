//! `cargo xtask bench`: the card's performance, and its limits.

use crate::trace::Way;
use anyhow::{Result, bail};
use clap::ValueEnum;
use std::path::PathBuf;
use testbed::conditions::{Conditions, DmaChannels, HostKind};
use tigon_bench::rounds::Rounds;
use tigon_bench::simulated::{self, Part, Request, What};
use tigon_bench::{eta, eudp, guest, knet, linux, speed, spine};

/// The measurements to run.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Engine that runs the card
    #[arg(long, value_enum, default_value_t = Engine::Sim)]
    pub engine: Engine,
    /// qemu: in a Linux guest: the card beside QEMU's own e1000
    #[arg(long)]
    pub guest: bool,
    /// sim: fewer sizes and shorter measurements
    #[arg(long)]
    pub quick: bool,
    /// sim: only this experiment, with a row for each firmware
    #[arg(long, value_enum, conflicts_with_all = ["golden", "sensitivity", "placements", "speed"])]
    pub experiment: Option<Way>,
    /// sim: only datagrams of this many bytes
    #[arg(long, value_name = "BYTES", value_parser = datagram,
          conflicts_with_all = ["golden", "sensitivity", "placements", "speed"])]
    pub datagram: Option<usize>,
    /// sim: use this firmware image (drivers' load format) instead of the project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// DMA channels that move data at a time; default: one with --firmware, else both
    #[arg(long, value_enum, conflicts_with_all = ["golden", "speed", "guest"])]
    pub dma_channels: Option<DmaChannels>,
    /// sim: whose host the card has
    #[arg(long, value_enum, default_value_t = HostKind::Driver,
          conflicts_with_all = ["golden", "speed", "guest"])]
    pub host: HostKind,
    /// sim: the timing profile of the board file, or "all" of them
    #[arg(long, default_value = "default")]
    pub profile: String,
    /// sim: regenerate the golden tables with the current firmware
    #[arg(long, conflicts_with_all = ["quick", "sensitivity", "firmware"])]
    pub golden: bool,
    /// sim: the effect of each timing parameter on the headline figures
    #[arg(long, conflicts_with = "quick")]
    pub sensitivity: bool,
    /// sim: both firmwares with code and data in scratch pads and in SRAM, as in the paper's
    /// Figures 7, 9, 11 and 13
    #[arg(long, conflicts_with_all = ["quick", "sensitivity", "firmware", "golden", "profile"])]
    pub placements: bool,
    /// sim: more CPUs than the chip has, on the boards with 10 Gb/s
    #[arg(long, conflicts_with_all = ["quick", "sensitivity", "firmware", "golden", "profile", "placements"])]
    pub beyond: bool,
    /// Measure how fast both engines run the firmware, by this computer's clock
    #[arg(long, conflicts_with_all = ["engine", "guest", "quick", "firmware", "profile", "golden", "sensitivity", "placements", "beyond"])]
    pub speed: bool,
    /// sim: run the KNET paper's experiments on a simulated host with several CPUs
    #[arg(long, conflicts_with_all = ["engine", "guest", "firmware", "profile", "golden", "sensitivity", "placements", "beyond", "speed", "experiment", "datagram", "dma_channels", "host"])]
    pub knet: bool,
    /// sim: what extensions of the card cost
    #[arg(long, conflicts_with_all = ["engine", "guest", "firmware", "profile", "golden", "sensitivity", "placements", "beyond", "speed", "knet", "experiment", "datagram", "dma_channels", "host"])]
    pub spine: bool,
    /// sim: datagrams of endpoints, cut through beside stored and forwarded
    #[arg(long, conflicts_with_all = ["eta", "knet", "spine", "engine", "guest", "firmware", "profile", "golden", "sensitivity", "placements", "beyond", "speed", "experiment", "datagram", "dma_channels", "host"])]
    pub eudp: bool,
    /// Measure a web server through the packet processing engine beside one through the kernel
    #[arg(long, conflicts_with_all = ["knet", "spine", "engine", "guest", "firmware", "profile", "golden", "sensitivity", "placements", "beyond", "speed", "experiment", "datagram", "dma_channels", "host"])]
    pub eta: bool,
    /// With --eta: put the figures that are measured into docs/eta.md
    #[arg(long, requires = "eta")]
    pub store: bool,
    /// With --eta: only this part
    #[arg(long, value_enum, requires = "eta")]
    pub part: Option<eta::Part>,
    /// Seconds of each run of iperf3, and of QEMU with --speed, by this computer's clock
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
    /// Number of alternating rounds; the report shows the medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub rounds: u32,
}

impl Arguments {
    /// What to measure under. Images of others are measured as in the timing model's
    /// calibration, which was made with such a one.
    fn conditions(&self) -> Conditions {
        let usual = match self.firmware {
            Some(_) => DmaChannels::One,
            None => DmaChannels::Both,
        };
        Conditions {
            dma_channels: self.dma_channels.unwrap_or(usual),
            host: self.host,
        }
    }

    /// Which of the simulated figures.
    fn what(&self) -> What {
        let part = Part {
            experiment: self.experiment.map(Way::experiment),
            datagram: self.datagram,
        };
        match self {
            it if it.beyond => What::Beyond,
            it if it.placements => What::Placements,
            it if it.golden => What::Golden,
            it if it.sensitivity => What::Sensitivity,
            _ if part.experiment.is_some() || part.datagram.is_some() => What::Part(part),
            it if it.quick => What::Quick,
            _ => What::Whole,
        }
    }
}

/// The bytes of a datagram that the experiments can number and a frame can hold.
fn datagram(text: &str) -> Result<usize, String> {
    let bytes = text
        .parse()
        .ok()
        .filter(|bytes| (18..=1472).contains(bytes));
    bytes.ok_or_else(|| format!("{text} is not from 18 to 1472"))
}

/// The engine that runs the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The simulator: the paper's microbenchmarks in the card's own time
    Sim,
    /// The QEMU machine: functional speed on this host
    Qemu,
}

/// Measures and reports.
///
/// # Errors
/// As the bench that is asked for, and for arguments that do not go together.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.speed {
        return speed::run(arguments.seconds);
    }
    if arguments.eta {
        return eta::run(arguments.quick, arguments.store, arguments.part);
    }
    if arguments.eudp {
        return eudp::run(arguments.quick);
    }
    if arguments.knet {
        return knet::run(arguments.quick);
    }
    if arguments.spine {
        return spine::cost::run(arguments.quick);
    }
    let rounds = Rounds {
        count: arguments.rounds,
        seconds: arguments.seconds,
    };
    match (arguments.engine, arguments.guest) {
        (Engine::Sim, false) => simulated::run(&Request {
            what: arguments.what(),
            firmware: arguments.firmware.clone(),
            profile: arguments.profile.clone(),
            conditions: arguments.conditions(),
        }),
        (Engine::Sim, true) => bail!("a guest needs --engine qemu"),
        (Engine::Qemu, true) => guest::run(rounds),
        (Engine::Qemu, false) if arguments.host != HostKind::Driver => {
            bail!("--host needs --engine sim")
        }
        (Engine::Qemu, false) => linux::run(arguments.dma_channels.unwrap_or_default(), rounds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: Arguments,
    }

    fn arguments(line: &[&str]) -> Arguments {
        Line::parse_from([&["bench"], line].concat()).bench
    }

    #[test]
    fn each_option_asks_for_its_figures() {
        let part = |experiment, datagram| {
            What::Part(Part {
                experiment,
                datagram,
            })
        };
        for (line, what) in [
            (&[][..], What::Whole),
            (&["--quick"], What::Quick),
            (&["--golden"], What::Golden),
            (&["--sensitivity"], What::Sensitivity),
            (&["--placements"], What::Placements),
            (&["--beyond"], What::Beyond),
            (&["--datagram", "18"], part(None, Some(18))),
            (
                &["--quick", "--experiment", "send"],
                part(Some(Way::Send.experiment()), None),
            ),
        ] {
            assert_eq!(arguments(line).what(), what, "{line:?}");
        }
    }

    /// The KNET experiments have a quick look, too, and nothing else goes with them.
    #[test]
    fn the_knet_experiments_go_alone() {
        assert!(arguments(&["--knet", "--quick"]).knet);
        for other in ["--golden", "--speed", "--guest", "--beyond"] {
            let line = ["bench", "--knet", other];
            assert!(Line::try_parse_from(line).is_err(), "{other}");
        }
    }

    /// So do the costs of extensions.
    #[test]
    fn the_costs_of_extensions_go_alone() {
        assert!(arguments(&["--spine", "--quick"]).spine);
        for other in ["--knet", "--golden", "--speed", "--guest"] {
            let line = ["bench", "--spine", other];
            assert!(Line::try_parse_from(line).is_err(), "{other}");
        }
    }

    /// Images of others are measured as in the calibration, unless it is said otherwise.
    #[test]
    fn an_image_of_others_has_one_dma_channel() {
        for (line, channels) in [
            (&[][..], DmaChannels::Both),
            (&["--firmware", "x"], DmaChannels::One),
            (
                &["--firmware", "x", "--dma-channels", "both"],
                DmaChannels::Both,
            ),
        ] {
            let conditions = arguments(line).conditions();
            assert_eq!(conditions.dma_channels, channels, "{line:?}");
        }
    }
}
