//! `tigonctl spine video` and `lease`: a screen of a process's, its videos, and ranges of the bus.

use crate::card;
use crate::tigonctl::Story;
use integration_tests::Engine;
use integration_tests::tigonctl::{complaint, objects, program, said};
use integration_tests::xtask_command::signal;
use rustix::process::Signal;
use spine_linker::video::test_card::{TestCard, colour, pixel};
use spine_linker::video::{Screen, Window};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SCREEN: &str = "200x120x16";
const WINDOWS: [&str; 2] = ["160x60+50+70", "160x60-10-5"];

fn loaded() -> Story {
    let mut story = Story::with(card::policy());
    let loaded = story.load(&card::ours("video"), &["ether:0x88B5"]);
    assert!(said(&loaded).starts_with("domain 0: spine-video, "));
    story
}

/// Starts a screen, whose windows are placed when this returns.
fn shown(story: &mut Story, picture: &Path) -> Child {
    let path = picture.display().to_string();
    let mut words = vec!["spine", "video", "show", "0", "--screen", SCREEN];
    for window in WINDOWS {
        words.extend(["--window", window]);
    }
    words.extend(["--png", &path]);
    let mut child = story.driver.start(&words);
    let lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let ready = std::thread::spawn(|| lines.lines().next());
    while !ready.is_finished() {
        story.driver.turn();
    }
    let line = ready.join().expect("no panic");
    assert_eq!(
        line.expect("it is ready").expect("text"),
        "ready: 2 windows"
    );
    child
}

/// Serves two pictures for both windows; returns how many frames came to the card.
fn served(story: &mut Story) -> u64 {
    let [local, remote] = ["server", "wire"].map(|name| story.path(name));
    let wire = UnixDatagram::bind(&remote).expect("a socket");
    wire.set_nonblocking(true).expect("a socket");
    let station = story
        .driver
        .stage
        .nic
        .station()
        .map(|byte| format!("{byte:02x}"));
    let server = Command::new(program())
        .args(["--json", "spine", "video", "serve"])
        .args(["--size", "160x60x16", "--windows", "2", "--pictures", "2"])
        .args(["--rate", "10000", "--station", &station.join(":")])
        .arg("--local")
        .arg(&local)
        .arg("--remote")
        .arg(&remote)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tigonctl starts");
    let server = std::thread::spawn(move || server.wait_with_output());
    let (mut came, mut buffer) = (0, [0; 2000]);
    loop {
        let has_ended = server.is_finished();
        match wire.recv(&mut buffer) {
            Ok(bytes) => {
                story.driver.stage.engine.send(&buffer[..bytes]);
                came += 1;
            }
            Err(_) if has_ended => break,
            Err(_) => story.driver.turn(),
        }
    }
    std::fs::remove_file(&remote).expect("it is ours");
    let output = server.join().expect("no panic").expect("it has ended");
    let lines = objects(&output);
    let last = lines.last().expect("a line");
    assert_eq!((&last["frames"], &last["lost"]), (&came.into(), &0.into()));
    came
}

/// Waits until the extension has had so many frames.
fn consumed(story: &mut Story, frames: u64) {
    loop {
        let lines = objects(&story.driver.run(&["--json", "spine", "stats", "0"]));
        if lines[0]["consumed"] == frames {
            return;
        }
        assert_eq!(lines[0]["dropped"], 0);
    }
}

/// Red, green and blue of all of a screen's pixels.
fn decoded(path: &Path) -> (u32, u32, Vec<u8>) {
    let file = BufReader::new(std::fs::File::open(path).expect("a picture"));
    let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
    let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut bytes).expect("pixels");
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width, info.height, bytes)
}

/// What the screen shows of both windows' second picture.
fn wanted() -> Vec<u8> {
    let screen: Screen = SCREEN.parse().expect("a screen");
    let mut colours = vec![0; (screen.width * screen.height * 3) as usize];
    for (number, window) in (0..).zip(WINDOWS) {
        let window: Window = window.parse().expect("a window");
        let card = TestCard {
            window: number,
            picture: 1,
            width: window.width,
            height: window.height,
        };
        for line in 0..window.height {
            for column in 0..window.width {
                let x = window.left + column as i32;
                let y = window.top + line as i32;
                let on_screen =
                    (0..screen.width as i32).contains(&x) && (0..screen.height as i32).contains(&y);
                if on_screen {
                    let at = ((y as u32 * screen.width + x as u32) * 3) as usize;
                    let shown: Vec<u8> = pixel(card.colour(line, column), screen.depth).collect();
                    colours[at..at + 3].copy_from_slice(&colour(&shown));
                }
            }
        }
    }
    colours
}

/// A server sends, the card writes into the screen of a process, the process writes a file; the
/// lease ends with the process.
#[test]
fn a_picture_goes_from_the_server_to_a_file() {
    let mut story = loaded();
    let picture = story.path("screen.png");
    let child = shown(&mut story, &picture);
    let frames = served(&mut story);
    assert_eq!(frames, 2 * 2 * 60);
    consumed(&mut story, frames);
    let text = complaint(&story.driver.run(&["spine", "lease", "0"]));
    assert!(
        text.contains("domain 0 writes to the screen of endpoint 2"),
        "{text}"
    );
    signal(&child, Signal::INT);
    said(&story.driver.finish(child));
    let (width, height, colours) = decoded(&picture);
    assert_eq!((width, height), (200, 120));
    assert!(colours == wanted(), "the picture shows something else");
    let text = said(&story.driver.run(&["spine", "stats", "0"]));
    assert!(!text.contains("it writes to"), "{text}");
}

/// However the process ends: there is a screen for the next one.
#[test]
fn a_screen_ends_with_its_process() {
    let mut story = loaded();
    let picture = story.path("screen.png");
    for _ in 0..2 {
        let mut child = shown(&mut story, &picture);
        let other = story.driver.run(&[
            "spine",
            "video",
            "show",
            "0",
            "--window",
            "8x8+0+0",
            "--png",
            "other.png",
            "--screen",
            "8x8x8",
        ]);
        let text = complaint(&other);
        assert!(text.contains("domain 0 has a lease already"), "{text}");
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        story.driver.turn();
    }
    assert!(!picture.exists());
    // An unload takes the lease with it, and the next extension of that number has none.
    let child = shown(&mut story, &picture);
    said(&story.driver.run(&["spine", "unload", "0"]));
    said(&story.load(&card::ours("video"), &[]));
    said(
        &story
            .driver
            .run(&["spine", "lease", "0", "0xD0000000", "4096"]),
    );
    signal(&child, Signal::INT);
    said(&story.driver.finish(child));
    let text = said(&story.driver.run(&["spine", "stats", "0"]));
    assert!(
        text.contains("it writes to 4096 bytes at 0xd0000000"),
        "{text}"
    );
}

#[test]
fn the_policy_says_what_is_leased() {
    let mut story = loaded();
    let mut run = |words: &[&str]| story.driver.run(&[&["spine"], words].concat());
    let leased = said(&run(&["lease", "0", "0xD0000000", "0x10000"]));
    assert_eq!(leased, "domain 0 writes to 65536 bytes at 0xd0000000\n");
    let text = complaint(&run(&["lease", "0", "0xD0000000", "0x10001"]));
    assert!(
        text.contains("a lease of 65537 bytes at 0xd0000000"),
        "{text}"
    );
    let text = said(&run(&["stats", "0"]));
    assert!(text.contains("it writes to 65536 bytes"), "{text}");
    assert_eq!(said(&run(&["lease", "0"])), "domain 0 has no lease\n");
    let text = complaint(&run(&["lease", "3", "0xD0000000", "16"]));
    assert!(text.contains("domain 3 is not loaded"), "{text}");
    let show = [
        "video", "show", "0", "--window", "8x8+0+0", "--png", "x.png",
    ];
    let text = complaint(&run(&[&show[..], &["--screen", "640x480x32"]].concat()));
    assert!(text.contains("a screen of 1228800 bytes"), "{text}");
    // Nothing stays of what was refused: that is the driver's own row.
    let ends = said(&run(&["endpoints"]));
    assert_eq!(ends.lines().count(), 2, "{ends}");
}
