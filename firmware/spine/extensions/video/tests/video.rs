//! The video client, run natively: what it has written against what should be seen of windows.

use spine::model::{Domain, Run, Sent};
use spine::{Endpoint, Verdict};
use spine_linker::video::{self as host, Piece, Screen, Window, placement};
use spine_video::{LINE, PLACE, REFUSED, UNSEEN, init};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The region is one, and tests run side by side.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const SCREEN: Screen = Screen {
    width: 96,
    height: 40,
    pitch: 210,
    depth: 1,
};
const OWNER: Endpoint = Endpoint(5);
const SIZE: (u32, u32) = (48, 12);

/// The extension and its screen.
struct Stage {
    domain: Domain,
    shown: Vec<u8>,
    serial: u32,
    _alone: MutexGuard<'static, ()>,
}

fn window(left: i32, top: i32) -> Window {
    Window {
        left,
        top,
        width: SIZE.0,
        height: SIZE.1,
    }
}

/// A pixel of a picture, never black.
fn pixel(picture: u32, line: u32, column: u32) -> u16 {
    (picture << 12 ^ line << 7 ^ column) as u16 | 0x8000
}

impl Stage {
    fn new() -> Stage {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut domain = Domain::load(init);
        domain.lease(SCREEN.bytes());
        let mut stage = Stage {
            domain,
            shown: vec![0; SCREEN.bytes() as usize],
            serial: 0x1000,
            _alone: alone,
        };
        // The region of the test before: nothing is seen, and no picture under way.
        for number in 0..host::WINDOWS {
            stage.place(number, host::AT_ONCE, &window(-1000, 0));
            stage.piece(number as u8, 0, (11, 0..48));
        }
        stage
    }

    /// Places a window; returns the answers' serials.
    fn place(&mut self, number: u32, flags: u32, window: &Window) -> Vec<u32> {
        self.serial += 1;
        self.place_as(number, flags, self.serial, window)
    }

    fn place_as(&mut self, number: u32, flags: u32, serial: u32, window: &Window) -> Vec<u32> {
        let words = placement(&SCREEN, number, flags, serial, window);
        let run = self.domain.message_from(OWNER, PLACE, &words);
        self.done(run.expect("it may call"), number)
    }

    /// Has a piece of a picture come; returns the answers' serials.
    fn piece(&mut self, number: u8, picture: u32, at: (u32, std::ops::Range<u32>)) -> Vec<u32> {
        let (line, columns) = at;
        let piece = Piece {
            window: number,
            picture,
            line: line as u16,
            column: columns.start as u16,
            columns: columns.len() as u16,
            is_last: line + 1 == SIZE.1 && columns.end == SIZE.0,
        };
        let pixels = columns.flat_map(|column| pixel(picture, line, column).to_le_bytes());
        let frame = host::line([2; 6], [4; 6], &piece, &pixels.collect::<Vec<u8>>());
        let run = self.domain.frame(LINE, &frame).expect("it is installed");
        assert_eq!(run.verdict, Some(Verdict::Consume));
        self.done(run, number.into())
    }

    fn done(&mut self, run: Run, number: u32) -> Vec<u32> {
        for (to, bytes) in &run.transferred {
            let to = *to as usize;
            self.shown[to..to + bytes.len()].copy_from_slice(bytes);
        }
        let answers = run.messages.iter().map(|(to, words)| {
            assert_eq!((*to, words[0]), (Sent::To(OWNER), number));
            words[1]
        });
        answers.collect()
    }

    fn picture(&mut self, number: u8, picture: u32) -> Vec<u32> {
        let mut answers = Vec::new();
        for line in 0..SIZE.1 {
            answers.extend(self.piece(number, picture, (line, 0..20)));
            answers.extend(self.piece(number, picture, (line, 20..SIZE.0)));
        }
        answers
    }
}

/// What a screen shows of a window's picture.
fn paint(onto: &mut [u8], picture: u32, window: &Window) {
    for line in 0..window.height {
        for column in 0..window.width {
            let (x, y) = (window.left + column as i32, window.top + line as i32);
            if (0..SCREEN.width as i32).contains(&x) && (0..SCREEN.height as i32).contains(&y) {
                let at = y as usize * SCREEN.pitch as usize + 2 * x as usize;
                onto[at..at + 2].copy_from_slice(&pixel(picture, line, column).to_le_bytes());
            }
        }
    }
}

#[test]
fn the_host_knows_what_the_extension_does() {
    assert_eq!(host::VIDEO, env!("CARGO_PKG_NAME"));
    assert_eq!(host::ETHER_TYPE, spine_video::ETHER_TYPE);
    assert_eq!(host::WINDOWS as usize, spine_video::WINDOWS);
    assert_eq!(host::PIXELS as u32, spine_video::PIXELS);
    assert_eq!((host::LINE, host::PLACE), (LINE.0, PLACE.0));
    assert_eq!(host::AT_ONCE, spine_video::AT_ONCE);
    let frame = host::line([2; 6], [4; 6], &PIECE, &[]);
    assert_eq!(u32::from(frame[16]), spine_video::VERSION);
    let words = placement(&SCREEN, 0, 0, 0, &window(0, 0));
    assert_eq!(words.len(), 2 + spine_video::PLACE_WORDS);
}

const PIECE: Piece = Piece {
    window: 0,
    picture: 1,
    line: 0,
    column: 0,
    columns: 8,
    is_last: false,
};

#[test]
fn windows_are_clipped_at_every_edge() {
    let mut stage = Stage::new();
    let mut wanted = vec![0; stage.shown.len()];
    let places = [
        (5, 3),
        (-7, 20),
        (70, 30),
        (10, -5),
        (96, 0),
        (-48, 40),
        (0, 28),
    ];
    for (number, (left, top)) in (0..).zip(places) {
        let window = window(left, top);
        assert_eq!(stage.place(number, 0, &window).len(), 1);
        stage.picture(number as u8, number + 1);
        paint(&mut wanted, number + 1, &window);
        assert!(stage.shown == wanted, "window {number}");
    }
}

/// Lines in any order, some twice: each begins where it should.
#[test]
fn lines_may_come_in_any_order() {
    let mut stage = Stage::new();
    let window = window(-3, 2);
    stage.place(0, 0, &window);
    for line in [5, 6, 4, 4, 11, 0, 1, 10, 2, 3, 9, 8, 7] {
        stage.piece(0, 9, (line, 0..SIZE.0));
    }
    let mut wanted = vec![0; stage.shown.len()];
    paint(&mut wanted, 9, &window);
    assert!(stage.shown == wanted);
}

#[test]
fn a_placement_takes_effect_between_two_pictures() {
    let mut stage = Stage::new();
    let (old, new) = (window(0, 0), window(40, 25));
    stage.place(2, 0, &old);
    stage.piece(2, 1, (0, 0..SIZE.0));
    assert_eq!(stage.place(2, 0, &new), [], "a picture is under way");
    let serial = stage.serial;
    for line in 1..SIZE.1 - 1 {
        assert_eq!(stage.piece(2, 1, (line, 0..SIZE.0)), []);
    }
    // The last piece is written by the old one.
    assert_eq!(stage.piece(2, 1, (SIZE.1 - 1, 0..SIZE.0)), [serial]);
    let mut wanted = vec![0; stage.shown.len()];
    paint(&mut wanted, 1, &old);
    assert!(stage.shown == wanted);
    stage.picture(2, 2);
    paint(&mut wanted, 2, &new);
    assert!(stage.shown == wanted);
    // The end of a picture is lost: the next one's first piece ends it.
    stage.piece(2, 3, (0, 0..SIZE.0));
    assert_eq!(stage.place(2, 0, &old), []);
    assert_eq!(stage.piece(2, 4, (0, 0..SIZE.0)), [serial + 1]);
    // Another takes its place while it waits; who wants it at once gets it.
    assert_eq!(stage.place(2, 0, &new), []);
    assert_eq!(stage.place(2, host::AT_ONCE, &new), [serial + 3]);
    let asked_again = stage.place_as(2, 0, serial + 3, &new);
    assert_eq!(asked_again, [serial + 3], "it is in effect");
}

#[test]
fn what_is_no_piece_or_does_not_fit_is_counted() {
    let mut stage = Stage::new();
    stage.place(0, 0, &window(0, 0));
    let count = |stage: &Stage, number: u32| stage.domain.counter(number as usize);
    let (unseen, refused) = (count(&stage, UNSEEN), count(&stage, REFUSED));
    let good = host::line([2; 6], [4; 6], &PIECE, &[7; 16]);
    for (at, byte) in [(16, 2), (17, 8)] {
        let mut frame = good.clone();
        frame[at] = byte;
        let run = stage.domain.frame(LINE, &frame).expect("installed");
        assert_eq!(
            (run.verdict, run.transferred.len()),
            (Some(Verdict::Drop), 0)
        );
    }
    let run = stage.domain.frame(LINE, &good[..28]).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Drop));
    stage.domain.lease(8);
    let run = stage.domain.frame(LINE, &good).expect("installed");
    assert_eq!(
        (run.verdict, run.transferred.len()),
        (Some(Verdict::Drop), 0)
    );
    assert_eq!(count(&stage, REFUSED), refused.map(|count| count + 4));
    stage.place(0, host::AT_ONCE, &window(0, 50));
    stage.piece(0, 1, (3, 0..8));
    assert_eq!(count(&stage, UNSEEN), unseen.map(|count| count + 1));
    // Placements of no window, with no depth, too short, and by whom they may not come.
    for words in [
        &[8, 0, 1, 0, 0, 0, 0, 0, 0, 0][..],
        &[0, 0, 1, 0, 0, 0, 0, 0, 0, 3],
        &[0; 9],
    ] {
        let run = stage
            .domain
            .message_from(OWNER, PLACE, words)
            .expect("it may call");
        assert_eq!(run.verdict, Some(Verdict::Drop));
    }
    let words = placement(&SCREEN, 0, 0, 1, &window(0, 0));
    assert_eq!(
        stage.domain.message_from(Endpoint::WIRE, PLACE, &words),
        None
    );
}
