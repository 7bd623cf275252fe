//! Videos in windows of a frame buffer on the bus.

use crate::card::kit;
use host_interface::spine::Outcome;
use host_interface::spine::lease::{LONGEST, asked};
use host_interface::spine::{DomainCount, HandlerCount};
use spine_linker::load::lease::Lease;
use spine_linker::load::{Card, LoadError};
use spine_linker::video::{Screen, Window};
use tigon_bench::functions;
use tigon_bench::spine::account;
use tigon_bench::spine::frames;
use tigon_bench::spine::video::server::Server;
use tigon_bench::spine::video::{Stage, moves, streams};
use tigon_bench::spine::window::{CardError, Window as NicMemory};
use tigon2_sim::timing::Parameters;

fn stage(width: u32, height: u32, pitch: u32, depth: u32) -> Stage {
    let screen = Screen {
        width,
        height,
        pitch,
        depth,
    };
    let stage = Stage::start(kit(), screen, &Parameters::default());
    stage.unwrap_or_else(|error| panic!("{error:#}"))
}

fn place(stage: &mut Stage, number: u8, window: &Window) {
    let placed = stage.place_and_wait(number, window);
    placed.unwrap_or_else(|error| panic!("{error:#}"));
}

/// At any depth and pitch, and clipped at every edge: the frame buffer shows the test card where its
/// window is, and no other byte has changed.
#[test]
fn the_frame_buffer_shows_what_the_server_sends() {
    for (depth, pitch) in [(2, 1200), (1, 513), (0, 257)] {
        let mut stage = stage(256, 100, pitch.max(256 << depth), depth);
        let mut wanted = vec![0; stage.pixels.len()];
        let windows = [(10, 5), (-33, 60), (217, -31), (100, 80), (-300, 0)];
        for (number, (left, top)) in (0..).zip(windows) {
            let window = Window {
                left,
                top,
                width: 90,
                height: 40,
            };
            place(&mut stage, number, &window);
            stage.picture(number, 7, (90, 40));
            stage.settle();
            stage.paint(&mut wanted, number, 7, &window);
        }
        let shown = stage.shown().expect("memory");
        assert!(shown == wanted, "depth {depth}, pitch {pitch}");
    }
}

/// What lies outside of the lease is refused by the runtime, whoever has placed the window; without a
/// lease all is. Nothing else is written.
#[test]
fn nothing_is_written_outside_of_the_lease() {
    let mut stage = stage(64, 64, 64, 0);
    stage.screen.height = 70;
    let window = Window {
        left: 0,
        top: 60,
        width: 64,
        height: 10,
    };
    place(&mut stage, 0, &window);
    stage.picture(0, 1, (64, 10));
    stage.settle();
    stage.screen.height = 64;
    let mut wanted = vec![0; stage.pixels.len()];
    stage.paint(&mut wanted, 0, 1, &window);
    assert!(stage.shown().expect("memory") == wanted, "four lines");
    assert_eq!(
        stage.card.counts(stage.domain).counters()[1],
        6,
        "six are refused"
    );
    let foreign = Lease {
        address: 0x1000,
        bytes: 4096,
    };
    let refused = stage.lease(foreign);
    assert!(refused.is_err(), "the policy grants the frame buffer alone");
    stage.lease(Lease::NONE).expect("it is withdrawn");
    stage.picture(0, 2, (64, 10));
    stage.settle();
    assert!(stage.shown().expect("memory") == wanted, "nothing more");
    assert_eq!(stage.card.counts(stage.domain).counters()[1], 16);
}

/// Streams of 40 Mb/s, four of them, lose no line; the host has nothing to do with them.
#[test]
fn streams_lose_no_line() {
    let mut stage = stage(640, 480, 1280, 1);
    let some = streams::streams(&mut stage, 4, 40.0, (320, 40), 10_000_000);
    let some = some.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((some.lost, some.host), (0, [0; 3]), "{some:?}");
    assert!(some.rate[0] > 150.0 && some.bus_bytes <= 1.0, "{some:?}");
}

/// Pieces that come faster than the card writes them wait in its receive buffer, for milliseconds, and
/// on the wire: when a burst has ended they are written, each of them, and none is dropped.
#[test]
fn a_burst_at_the_wires_rate_loses_no_piece() {
    let size = (320, 40);
    let mut stage = stage(size.0, size.1, 640, 1);
    let window = Window {
        left: 0,
        top: 0,
        width: size.0,
        height: size.1,
    };
    place(&mut stage, 0, &window);
    let machine = stage.card.machine.clone();
    let consumed =
        |stage: &Stage| u64::from(stage.card.counts(stage.domain).of(DomainCount::Consumed));
    let (before, received) = (consumed(&stage), machine.lock().received());
    let mut server = Server::new(&stage, 1, 0.0, size);
    server.go_on(&mut stage, u64::MAX, 2_000_000);
    let come = machine.lock().received().accepted - received.accepted;
    let waiting = come - (consumed(&stage) - before);
    assert!(waiting > 100, "{waiting} of {come} wait in the card");
    stage.settle();
    let after = machine.lock().received();
    assert_eq!(after.dropped, received.dropped);
    assert_eq!(after.accepted - received.accepted, server.pieces);
    assert_eq!(consumed(&stage) - before, server.pieces);
}

/// `cargo xtask bench --spine`, its rows of videos: with each timing profile the paper's streams lose
/// nothing, and the host has nothing to do; CPU A's cycles for a piece are all accounted for.
#[test]
fn the_rows_of_videos_are_measured() {
    let rows = streams::measure(kit(), true).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{}", streams::table(&rows));
    assert_eq!(rows.len(), 4 * 5, "four profiles");
    for row in rows {
        assert_eq!(row.host, [0; 3], "{row:?}");
        assert!(row.milliseconds != 20 || row.lost == 0, "{row:?}");
    }
    let through_host = streams::through_host(kit()).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{through_host:?}");
    assert!(through_host.pieces > 400 && through_host.accesses > 0.1);
    assert!(
        (through_host.bus_bytes - 2.1).abs() < 0.1,
        "as docs/spine.md"
    );
    let shares = streams::account(kit(), 2_000_000).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{}", account::table(&shares));
    assert!(
        shares
            .iter()
            .any(|share| share.function == functions::EXTENSION)
    );
}

/// The paper's authors had to stop the video before a window moved. Here windows move a thousand times
/// a second while lines come: each move is answered, and behind the answer no byte lands where the
/// window was.
#[test]
fn windows_move_while_their_videos_come() {
    let mut stage = stage(960, 48, 1920, 1);
    let moved = moves::moves(&mut stage, 40.0, (320, 12), 1000, 50_000_000);
    let moved = moved.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((moved.moves, moved.lost), (49, 0), "{moved:?}");
}

/// Pieces that cannot be written, as nothing is there, are lost alone: the host gets its frames
/// among them, and the receive buffer stays free for more than it could hold.
#[test]
fn the_hosts_frames_among_pieces_that_fail_arrive() {
    let mut stage = stage(640, 4, 1280, 1);
    let window = Window {
        left: 0,
        top: 0,
        width: 640,
        height: 4,
    };
    place(&mut stage, 0, &window);
    let pieces = stage.pieces(0, 1, 0, (640, 4));
    let nowhere = Lease {
        address: 0xD300_0000,
        ..stage.whole()
    };
    stage.lease(nowhere).expect("it is granted");
    let runs = stage.card.counts(stage.domain).of(HandlerCount::Runs);
    let card = &mut stage.card;
    let station = card.nic.station();
    for round in 0..100 {
        let mut wanted = Vec::new();
        for number in 0..4 {
            let frame = frames::plain(
                station,
                frames::PEER,
                0x88B6,
                number,
                60 + 300 * number as usize,
            );
            let mut machine = card.machine.lock();
            let now = machine.now();
            machine.send_frame(now, pieces[number as usize % pieces.len()].clone());
            machine.send_frame(now, frame.clone());
            drop(machine);
            wanted.push(frame);
        }
        card.machine.pass(2_000_000);
        card.nic.service().expect("a card");
        let came = card.nic.receive_batch(64).expect("frames");
        let lengths: Vec<usize> = came.iter().map(Vec::len).collect();
        assert!(came == wanted, "round {round}: frames of {lengths:?} bytes");
    }
    assert_eq!(
        stage.card.counts(stage.domain).of(HandlerCount::Runs) - runs,
        400
    );
    let shown = stage.shown().expect("memory");
    assert!(shown.iter().all(|byte| *byte == 0), "nothing is written");
}

/// Whatever is on its way when a lease is withdrawn: behind the firmware's answer nothing is written.
#[test]
fn a_lease_is_withdrawn_while_lines_arrive() {
    withdraw_often(40.0);
}

#[test]
fn a_lease_is_withdrawn_at_the_wires_rate() {
    withdraw_often(0.0);
}

/// While streams come, each at so many megabits of pixels a second.
fn withdraw_often(rate: f64) {
    let mut stage = stage(640, 160, 1280, 1);
    let size = (320, 80);
    for number in 0..4u8 {
        let (column, row) = (i32::from(number % 2), i32::from(number / 2));
        let window = Window {
            left: column * 320,
            top: row * 80,
            width: size.0,
            height: size.1,
        };
        place(&mut stage, number, &window);
    }
    let mut server = Server::new(&stage, 4, rate, size);
    let whole = stage.whole();
    let mut refused = stage.card.counts(stage.domain).counters()[1];
    for round in 0..30 {
        let before = stage.shown().expect("memory");
        server.go_on(&mut stage, u64::MAX, 300_000 + 1700 * round);
        stage.lease(Lease::NONE).expect("it is withdrawn");
        let shown = stage.shown().expect("memory");
        let counts = stage.card.counts(stage.domain);
        assert!(
            shown != before,
            "round {round}: lines have come: {counts:?}"
        );
        server.go_on(&mut stage, u64::MAX, 200_000);
        assert!(stage.shown().expect("memory") == shown, "round {round}");
        let counted = stage.card.counts(stage.domain).counters()[1];
        assert!(counted > refused, "round {round}: lines go on coming");
        refused = counted;
        stage.lease(whole).expect("it is granted");
    }
}

/// A card that is asked for a lease of more bytes than there can be.
struct TooLong<'a> {
    card: &'a mut NicMemory,
    lease: u32,
}

impl Card for TooLong<'_> {
    type Error = CardError;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Self::Error> {
        self.card.read(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Self::Error> {
        if address == self.lease {
            return self.card.write(address, &[0, 0, LONGEST + 1]);
        }
        self.card.write(address, words)
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Self::Error> {
        self.card.ring(mailbox)
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), Self::Error> {
        self.card.post(mailbox, high, low)
    }

    fn wait(&mut self, turns: u32) -> bool {
        self.card.wait(turns)
    }

    fn lease_window(&mut self, address: u32) -> Result<(), Self::Error> {
        self.card.lease_window(address)
    }

    fn take_back_window(&mut self) {
        self.card.take_back_window();
    }
}

/// A lease that the firmware refuses leaves the one before as it is.
#[test]
fn a_lease_that_is_refused_changes_nothing() {
    let mut stage = stage(64, 32, 64, 0);
    let window = Window {
        left: 0,
        top: 0,
        width: 64,
        height: 32,
    };
    place(&mut stage, 0, &window);
    let (whole, domain) = (stage.whole(), stage.domain);
    let lease = stage.card.loader.peer_page() + asked(domain);
    let mut card = TooLong {
        card: &mut stage.card.window,
        lease,
    };
    let refused = stage.card.loader.set_lease(&mut card, domain, whole);
    let is_too_long = matches!(refused, Err(LoadError::Refused(Outcome::TooLong)));
    assert!(is_too_long, "{refused:?}");
    stage.picture(0, 3, (64, 32));
    stage.settle();
    let mut wanted = vec![0; stage.pixels.len()];
    stage.paint(&mut wanted, 0, 3, &window);
    assert!(stage.shown().expect("memory") == wanted);
}
