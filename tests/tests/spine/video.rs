//! Videos in windows of a frame buffer on the bus.

use spine_linker::load::lease::Lease;
use spine_linker::video::{Screen, Window};
use std::sync::OnceLock;
use tigon_bench::spine::card::Kit;
use tigon_bench::spine::video::{self, Stage};
use tigon2_sim::timing::Parameters;

fn kit() -> &'static Kit {
    static KIT: OnceLock<Kit> = OnceLock::new();
    KIT.get_or_init(|| Kit::build().unwrap_or_else(|error| panic!("{error:#}")))
}

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
    let serial = stage.place(number, 0, window).expect("there is room");
    let mut answer = None;
    for _ in 0..100 {
        stage.pass(10_000);
        answer = stage.answer().expect("a whole ring");
        if answer.is_some() {
            break;
        }
    }
    let counts = stage.card.counts(stage.domain);
    assert_eq!(answer, Some((number.into(), serial)), "{counts:?}");
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
    assert_eq!(stage.card.counts(stage.domain)[8 + 1], 6, "six are refused");
    let foreign = Lease {
        address: 0x1000,
        bytes: 4096,
    };
    let card = &mut stage.card;
    let refused = card
        .loader
        .set_lease(&mut card.window, stage.domain, foreign);
    assert!(refused.is_err(), "the policy grants the frame buffer alone");
    let none = card
        .loader
        .set_lease(&mut card.window, stage.domain, Lease::NONE);
    none.expect("it is withdrawn");
    stage.picture(0, 2, (64, 10));
    stage.settle();
    assert!(stage.shown().expect("memory") == wanted, "nothing more");
    assert_eq!(stage.card.counts(stage.domain)[8 + 1], 16);
}

/// Streams of 40 Mb/s, four of them, lose no line; the host has nothing to do with them.
#[test]
fn streams_lose_no_line() {
    let mut stage = stage(640, 480, 1280, 1);
    let some = video::streams(&mut stage, 4, 40.0, (320, 40), 10_000_000);
    let some = some.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((some.lost, some.host), (0, [0, 0]), "{some:?}");
    assert!(some.rate[0] > 150.0 && some.bus_bytes <= 1.0, "{some:?}");
}
