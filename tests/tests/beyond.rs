//! More than two CPUs (section 7 of the paper), on the boards beyond the chip: the firmware
//! by handler and by packet. docs/beyond.md has the figures of `cargo xtask bench --beyond`.

use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::experiment::{self, Duration, Experiment, Measured};
use tigon2_sim::workload::rig::Setup;
use tigon2_sim::{Machine, SimTransport, explore};
use xtask::firmware::{self, FirmwareOptions, Placement, Variant, own};

/// Short looks.
const LOOK: Duration = Duration {
    warm_up: 1_000_000,
    window: 2_000_000,
    steps: 6,
    nearness: 0.02,
};
/// Schedules of each.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

fn board(cpus: u32) -> (Board, Parameters) {
    let path = xtask::paths::root().join(format!("boards/tigon2/beyond-{cpus}.toml"));
    let text = std::fs::read_to_string(path).expect("a board file");
    (
        Board::from_toml(&text).expect("a board"),
        Parameters::from_toml(&text, "default").expect("a profile"),
    )
}

fn image(name: &str) -> Vec<u8> {
    let variant = own::beyond().iter().find(|own| own.name == name);
    let built = firmware::build(FirmwareOptions {
        variant: Variant::Own(variant.expect("a variant")),
        placement: Placement::Scratch,
        quiet: true,
    });
    std::fs::read(built.expect("a firmware").tg2).expect("an image")
}

fn carries(image: &[u8], cpus: u32, datagram: usize) -> Measured {
    let (board, parameters) = board(cpus);
    let setup = Setup {
        fragments: 1,
        ..Setup::new(board, parameters, image)
    };
    // Every byte of every frame is checked, and the order.
    experiment::run(&setup, Experiment::Bidirectional, datagram, LOOK).expect("all frames")
}

/// Several packets of one handler at once: nothing is lost or changed, and six CPUs carry
/// half as much again as four do. Four CPUs with a handler each stop at the slowest handler.
#[test]
fn more_cpus_carry_more_frames() {
    let (by_handler, by_packet) = (image("by-handler"), image("by-packet"));
    let four = carries(&by_packet, 4, 400);
    let six = carries(&by_packet, 6, 400);
    let handlers = carries(&by_handler, 4, 400);
    for measured in [&four, &six, &handlers] {
        assert_eq!(measured.dropped, 0);
        assert!(measured.mbps() > 2200.0, "{}", measured.mbps());
    }
    assert!(
        six.mbps() > 1.5 * four.mbps(),
        "{} {}",
        six.mbps(),
        four.mbps()
    );
    assert!(handlers.busy(2).max(handlers.busy(3)) > 0.95);
    assert!(handlers.busy(0).max(handlers.busy(1)) < 0.8);
}

/// Without locks it must be right under every skew of any CPU against the others: each frame
/// once, in order, whole.
#[test]
fn every_frame_comes_out_once_and_in_order_on_four_and_six_cpus() {
    for (name, cpus) in [("by-handler", 4), ("by-packet", 4), ("by-packet", 6)] {
        let image = image(name);
        for seed in SEEDS {
            let transport = SimTransport::new(Machine::new(board(cpus).0));
            let outcome = explore::run_on(transport, &image, seed, explore::PATIENCE, None);
            if let Err(error) = outcome {
                panic!("{name} on {cpus} CPUs, seed {seed}: {error}");
            }
        }
    }
}
