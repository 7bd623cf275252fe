//! Tests the paper's microbenchmarks with the real firmware, in simulated time.

use host_driver::nic::{Coalescing, JumboRing, Ring};
use integration_tests::stage;
use testbed::firmware::choice::{self, Variant};
use tigon2_chip::bits::AssistState;
use tigon2_chip::{Cpu, Register};
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::arrivals::{Arrivals, Pattern};
use tigon2_sim::workload::bound::{self, Demand};
use tigon2_sim::workload::experiment::{Duration, Experiment, Measured, run, wire_limit};
use tigon2_sim::workload::host::Host;
use tigon2_sim::workload::testbench::{BSD, Load, Setup, Source, Testbench};

fn measure_with(experiment: Experiment, datagram: usize, unlimited: bool) -> Measured {
    measure_of(experiment, datagram, 2, unlimited)
}

fn measure_of(
    experiment: Experiment,
    datagram: usize,
    fragments: u32,
    unlimited: bool,
) -> Measured {
    let firmware = stage::firmware();
    let setup = Setup {
        unlimited,
        fragments,
        ..Setup::new(Board::default(), Parameters::default(), &firmware)
    };
    run(&setup, experiment, datagram, Duration::QUICK).unwrap_or_else(|error| panic!("{error}"))
}

fn measure(experiment: Experiment, datagram: usize) -> Measured {
    measure_with(experiment, datagram, false)
}

/// Simulated time has no noise: not one cycle, not one instruction.
#[test]
fn the_same_experiment_gives_the_same_result() {
    let runs = [0, 1].map(|_| measure(Experiment::Send, 400));
    let figures = runs.map(|run| {
        let [before, after] = &run.readings;
        (
            (run.sent, run.received, before.cycle, after.cycle),
            (after.instructions, after.grants, after.pci_busy),
            (before.counts.clone(), after.counts.clone()),
        )
    });
    assert!(figures[0] == figures[1]);
    assert!(figures[0].0.0 > 0);
}

/// What the engines carry both ways of frames of two BDs, in Mb/s.
fn engines_bound(datagram: usize) -> f64 {
    let demand = Demand {
        datagram,
        fragments: 2,
        return_bds: 8,
        one_at_a_time: false,
    };
    let (board, parameters) = (Board::default(), Parameters::default());
    let bound = bound::run(board, parameters, demand, 5_000_000, 1);
    bound.expect("the engines carry frames").mbps(datagram)
}

/// Every byte and the order are checked at both ends; nothing is lost, nothing is faster
/// than the wire or the engines.
#[test]
fn no_point_loses_a_frame_or_beats_its_limits() {
    for experiment in [
        Experiment::Send,
        Experiment::Receive,
        Experiment::Bidirectional,
    ] {
        for datagram in [18, 1472] {
            let measured = measure(experiment, datagram);
            let name = format!("{}, {datagram} bytes", experiment.name());
            assert_eq!(measured.dropped, 0, "{name}");
            assert!(measured.mbps() > 0.0, "{name}");
            // Frames in flight at the window's ends count to one side or the other.
            assert!(measured.mbps() <= measured.limit_mbps() * 1.05, "{name}");
            divided_as_the_variant_says(&measured, &name);
            if experiment == Experiment::Bidirectional {
                let bound = engines_bound(datagram);
                assert!(measured.mbps() <= bound * 1.02, "{name}: bound {bound}");
            }
        }
    }
}

/// Sizes at which the rings between the CPUs and the channels are filled in other ways: a
/// return BD that was made where another one had not been moved yet was seen at 600 bytes.
#[test]
fn between_the_extremes_frames_come_whole_and_in_order() {
    for datagram in [200, 500, 600, 800] {
        let measured = measure_of(Experiment::Bidirectional, datagram, 1, false);
        assert_eq!(measured.dropped, 0, "{datagram}");
        assert!(measured.received > 0 && measured.sent > 0, "{datagram}");
    }
}

/// The wire brings what the experiment says also while the host is in its service.
#[test]
fn a_card_that_keeps_up_gets_the_whole_wire() {
    for datagram in [100, 200] {
        let measured = measure_with(Experiment::Receive, datagram, true);
        let share = measured.mbps() / measured.limit_mbps();
        assert!((0.98..1.02).contains(&share), "{datagram}: {share}");
    }
}

/// The uniprocessor firmware never wakes CPU B. In the parallel one a CPU has what its
/// direction asks of it, and with both directions neither has much more than the other: not
/// where they are the limit. Where the engines are, CPU B has its time for looks at single
/// transfers while they are late.
fn divided_as_the_variant_says(measured: &Measured, name: &str) {
    let [a, b] = [0, 1].map(|cpu| measured.busy(cpu));
    assert!(a > 0.0 && a <= 1.01 && b <= 1.01, "{name}: {a} and {b}");
    if choice::chosen().0 == Variant::Uniprocessor {
        assert_eq!(b, 0.0, "{name}");
        return;
    }
    let share = a / (a + b);
    let expected = match measured.experiment {
        Experiment::Send => 0.0..0.5,
        Experiment::Receive => 0.5..1.0,
        _ if measured.datagram < 100.0 => 0.45..0.55,
        _ => 0.35..0.65,
    };
    assert!(expected.contains(&share), "{name}: CPU A has {share:.3}");
}

/// With CPUs that take no time the firmware asks the engines for what `workload::bound`
/// does from a script: two ways to the same bound, without a common line.
#[test]
fn without_limit_the_firmware_reaches_the_engines_bound() {
    for datagram in [18, 400] {
        let measured = measure_with(Experiment::Bidirectional, datagram, true);
        let share = measured.mbps() / engines_bound(datagram);
        assert!(
            (0.95..1.03).contains(&share),
            "{datagram} bytes: {share:.3}"
        );
    }
}

/// `R[11C]` bit 2 by bit 6 of the operating mode: the channels take turns, and the same
/// firmware carries less.
#[test]
fn one_dma_channel_at_a_time_is_a_condition_of_the_experiment() {
    let firmware = stage::firmware();
    let usual = Setup::new(Board::default(), Parameters::default(), &firmware);
    let carried = [false, true].map(|one_dma| {
        let setup = Setup {
            one_dma,
            ..usual.clone()
        };
        let testbench = Testbench::start(&setup).expect("it comes up");
        let assist = testbench
            .machine()
            .lock()
            .bar_read(Register::AssistState.offset());
        assert_eq!(AssistState::from_bits(assist).one_at_a_time(), one_dma);
        let measured = run(&setup, Experiment::Bidirectional, 1472, Duration::QUICK);
        measured.expect("it carries frames").mbps()
    });
    assert!(carried[1] < carried[0] * 0.95, "{carried:?}");
}

/// `timing.md` 1.6: 256 standard and 256 mini buffers, and a jumbo ring, to which a driver
/// gives buffers when the MTU asks for them.
#[test]
fn a_card_can_have_the_calibrations_host() {
    let firmware = stage::firmware();
    let setup = Setup {
        host: Host::Calibration,
        one_dma: true,
        ..Setup::new(Board::default(), Parameters::default(), &firmware)
    };
    let mut testbench = Testbench::start(&setup).expect("it comes up");
    for (ring, buffers) in [(Ring::Standard, 256), (Ring::Mini, 256), (Ring::Jumbo, 0)] {
        assert_eq!(
            testbench.nic().receive_outstanding_in(ring),
            buffers,
            "{ring:?}"
        );
    }
    assert_eq!(testbench.nic().config().jumbo, JumboRing::Normal);
    for datagram in [18, 1472] {
        let measured = run(&setup, Experiment::Receive, datagram, Duration::QUICK);
        let measured = measured.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(measured.dropped, 0, "{datagram}");
        assert!(measured.received > 100, "{datagram}");
    }
}

/// A ping does not wait for anything but the card and its host's interrupt: the timing
/// model's calibration has about 37 and 65 microseconds with the vendor's firmware, of
/// which 8 are the host's.
#[test]
fn a_ping_takes_tens_of_microseconds() {
    for (datagram, about) in [(18, 37.0), (1472, 65.0)] {
        let us = measure(Experiment::Ping, datagram).latency_us;
        let ratio = us.expect("a latency") / about;
        assert!((0.5..1.3).contains(&ratio), "{datagram} bytes: {us:?} us");
    }
}

/// At the largest size the firmware fills the wire one way, and sleeps between: a full
/// transmit buffer is looked at by the clock.
#[test]
fn one_way_the_largest_frames_fill_the_wire() {
    for experiment in [Experiment::Send, Experiment::Receive] {
        let measured = measure(experiment, 1472);
        let frames = (measured.sent + measured.received) as f64 / measured.seconds;
        let share = frames / wire_limit(1472);
        assert!(share > 0.98, "{}: {share:.3}", experiment.name());
        for cpu in [0, 1] {
            let busy = measured.busy(cpu);
            assert!(busy < 0.9, "{}, {cpu}: {busy:.3}", experiment.name());
        }
    }
}

/// With times that are shorter than a copy of the counters, a deadline passes while one is made.
/// Silicon that compares for equality would miss a reference that has passed when it is written,
/// and all deadlines with it for 71 minutes.
#[test]
fn no_timer_reference_has_passed_when_it_is_written() {
    let firmware = stage::firmware();
    let setup = Setup {
        coalescing: Coalescing {
            receive_ticks: 25,
            transmit_ticks: 25,
            ..BSD
        },
        ..Setup::new(Board::default(), Parameters::default(), &firmware)
    };
    let mut bench = Testbench::start(&setup).expect("the link is up");
    let (outbound, inbound) = (bench.outbound(18), bench.inbound(18));
    let arrivals = Arrivals::new(Pattern::Constant, 100_000.0, bench.now(), 1);
    let mut load = Load {
        send: Some(outbound.expect("a frame's size")),
        receive: Some(Source::new(inbound.expect("a frame's size"), arrivals)),
    };
    bench.run(&mut load, 60_000_000).expect("frames both ways");
    let machine = bench.machine().lock();
    let late = Cpu::ALL.map(|cpu| machine.card().late_references(cpu));
    assert_eq!(late, [0, 0], "CPU A's and CPU B's");
}
