//! Tests `tigonctl top` in a terminal: its screen, another size, its end.

use clap::ValueEnum;
use host_driver::Config;
use host_driver::nic::DropReason;
use integration_tests::engine::tools;
use integration_tests::tigonctl::{Driver, complaint, program};
use integration_tests::{Engine, Sim, Stage, frames};
use portable_pty::{Child, CommandBuilder, PtyPair, PtySize, native_pty_system};
use spine_linker::policy::Policy;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use testbed::firmware::{FirmwareOptions, Placement, Variant, build};

const PATIENCE: Duration = Duration::from_secs(30);

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

/// Rows or columns of the screen.
fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a screen has cells")
}

/// A terminal with `top` in it, beside the process that drives the card.
struct Terminal {
    driver: Driver<Sim>,
    pty: PtyPair,
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    number: u32,
}

impl Terminal {
    fn open(rows: u16, cols: u16, words: &[&str]) -> Terminal {
        Terminal::of(Driver::<Sim>::open(), rows, cols, words)
    }

    /// The same beside a driver that is there.
    fn of(driver: Driver<Sim>, rows: u16, cols: u16, words: &[&str]) -> Terminal {
        let pty = native_pty_system()
            .openpty(size(rows, cols))
            .expect("a terminal");
        let mut command = CommandBuilder::new(program());
        command.args(driver.arguments());
        command.args(["top", "--interval", "0.1"]);
        command.args(words);
        command.env("TERM", "xterm-256color");
        let child = pty.slave.spawn_command(command).expect("tigonctl starts");
        let mut reader = pty.master.try_clone_reader().expect("its output");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = pty.master.take_writer().expect("its input");
        Terminal {
            driver,
            pty,
            child,
            keys,
            output,
            screen: vt100::Parser::new(cells(rows), cells(cols), 0),
            number: 0,
        }
    }

    /// Moves a frame each way, and shows what was written to the terminal.
    fn turn(&mut self) {
        let stage = &mut self.driver.stage;
        let frame = stage.inbound(self.number);
        stage.engine.send(&frame);
        let frame = frames::numbered(frames::PEER, stage.nic.station(), self.number);
        stage.transmit(&[&frame]);
        while stage.wire_now().is_some() {}
        self.number += 1;
        self.driver.turn();
        let _ = self.driver.stage.nic.receive_batch(64).expect("frames");
        while let Ok(bytes) = self.output.try_recv() {
            self.screen.process(&bytes);
        }
    }

    fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Goes on until the screen is as it should be.
    fn until(&mut self, what: &str, holds: impl Fn(&vt100::Screen) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(self.screen.screen()) {
            assert!(Instant::now() < end, "no {what}:\n{}", self.text());
            self.turn();
        }
    }
}

/// Frames and megabits a second behind a word of the first line.
fn rate(text: &str, word: &str) -> f64 {
    let behind = text.split(word).nth(1).unwrap_or_default();
    let number = behind.trim().split("/s").next().unwrap_or_default();
    number.parse().unwrap_or(0.0)
}

#[test]
fn load_rings_rates_and_drops_are_on_the_screen_until_q() {
    let mut terminal = Terminal::open(24, 100, &[]);
    let screen =
        |part: &'static str| move |screen: &vt100::Screen| screen.contents().contains(part);
    terminal.until("alternate screen", |screen| screen.alternate_screen());
    terminal.until("handler that runs", screen("ReceiveComplete"));
    terminal.until("handler of the send path", screen("SendDataReady"));
    for part in [
        "tigonctl top",
        "CPU A:",
        "CPU B:",
        "mac receive",
        "dma write",
        "q ends",
    ] {
        assert!(
            terminal.text().contains(part),
            "{part}:\n{}",
            terminal.text()
        );
    }
    terminal.until("rates", |screen| {
        let text = screen.contents();
        rate(&text, " in ") > 0.0 && rate(&text, " out ") > 0.0
    });
    terminal.until("load of CPU A", |screen| {
        let text = screen.contents();
        let line = text.lines().find(|line| line.contains("CPU A:"));
        line.is_some_and(|line| line.contains("idle turns a second"))
    });
    terminal
        .driver
        .stage
        .nic
        .count_drops(DropReason::NoTaker, 3);
    terminal.until("drop", |screen| {
        let text = screen.contents();
        let line = text
            .lines()
            .find(|line| line.contains("NoTaker") || line.contains("no_taker"));
        line.is_some_and(|line| line.contains('3'))
    });

    // Another size: drawn anew to its new edge.
    let frame = |screen: &vt100::Screen, column: u16| {
        let (rows, _) = screen.size();
        let cell = |row| {
            screen
                .cell(row, column)
                .map(|cell| cell.contents().to_owned())
        };
        (0..rows.get()).any(|row| cell(row).as_deref() == Some("┐"))
    };
    assert!(frame(terminal.screen.screen(), 99), "{}", terminal.text());
    terminal
        .pty
        .master
        .resize(size(20, 70))
        .expect("another size");
    terminal.screen.screen_mut().set_size(cells(20), cells(70));
    terminal.until("frame at the new edge", |screen| frame(screen, 69));

    // The end: the terminal is as it was, and what is typed is seen again.
    terminal.keys.write_all(b"q").expect("a key");
    let end = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = terminal.child.try_wait().expect("it runs") {
            break status;
        }
        assert!(Instant::now() < end, "q does not end it");
        terminal.turn();
    };
    assert!(status.success(), "{status:?}");
    terminal.until("normal screen", |screen| {
        !screen.alternate_screen() && !screen.hide_cursor()
    });
    terminal.keys.write_all(b"typed\r").expect("keys");
    terminal.until("echo", |screen| screen.contents().contains("typed"));
}

/// With the firmware's ELF file each handler's part of its CPU's time is there, too.
#[test]
fn the_load_of_each_handler_is_on_the_screen() {
    let elf = tools().firmware.elf.display().to_string();
    let mut terminal = Terminal::open(40, 110, &["--elf", &elf]);
    let end = Instant::now() + PATIENCE;
    // What stands in a row under the heading of a CPU.
    let load = |text: &str, row: &str, cpu: &str| {
        let mut lines = text.lines().skip_while(|line| !line.contains("runs/s"));
        let end = lines.next()?.split_once(cpu)?.0.chars().count() + cpu.len();
        let line = lines.find(|line| line.contains(row))?;
        let cell: String = line.chars().take(end).skip(end - "100.0".len()).collect();
        cell.trim().parse::<f64>().ok()
    };
    // A handler and idle have their parts, and the load above them is what is not idle.
    let adds_up = |text: &str| {
        let of = |row| load(text, row, "A %");
        let (Some(part), Some(idle)) = (of("ReceiveComplete"), of("idle")) else {
            return false;
        };
        let busy = format!("CPU A: {:.1} %", 100.0 - idle);
        part > 0.0 && part + idle <= 100.01 && text.contains(&busy)
    };
    while !adds_up(&terminal.text()) {
        assert!(Instant::now() < end, "no load:\n{}", terminal.text());
        // The card works while the program counters are read.
        for _ in 0..20 {
            let stage = &mut terminal.driver.stage;
            let frame = stage.inbound(terminal.number);
            stage.engine.send(&frame);
            terminal.number += 1;
        }
        terminal.turn();
    }
    let text = terminal.text();
    let of_b = load(&text, "ReceiveComplete", "B %");
    assert_eq!(of_b, None, "CPU A takes received frames:\n{text}");
    assert!(text.contains("each CPU's time, by "), "{text}");
    terminal.keys.write_all(b"q").expect("a key");
}

/// A driver that serves extensions says so, while none is loaded, too.
#[test]
fn extensions_and_their_pool_are_on_the_screen() {
    let built = build(FirmwareOptions {
        variant: Variant::from_str("spine", false).expect("a variant"),
        placement: Placement::Scratch,
        quiet: true,
    });
    let image = std::fs::read(built.expect("the firmware builds").tg2).expect("the image");
    let mut stage = Stage::<Sim>::probed(Config::default());
    stage.nic.load(&image).expect("it starts");
    stage.nic.open().expect("it opens");
    let driver = Driver::of(stage).with_extensions(Policy::default());
    let mut terminal = Terminal::of(driver, 24, 80, &[]);
    terminal.until("pool", |screen| {
        let text = screen.contents();
        text.contains("extensions: 12 slots of the pool are free") && text.contains("cut off")
    });
    terminal.keys.write_all(b"q").expect("a key");
}

#[test]
fn another_elf_file_is_refused() {
    let mut driver = Driver::<Sim>::open();
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = std::fs::read(tools().firmware.elf).expect("the ELF");
    let block = driver.stage.nic.log_block().expect("the card");
    let build = block.expect("a log").build;
    let at = bytes.windows(20).position(|id| id == build.0);
    bytes[at.expect("its id")] ^= 1;
    let other = folder.path().join("other.elf");
    std::fs::write(&other, &bytes).expect("room");
    let words = ["top", "--elf", &other.display().to_string()];
    let text = complaint(&driver.run(&words));
    assert!(text.contains("the card runs build"), "{text}");
    std::fs::write(&other, &bytes[..1000]).expect("room");
    let text = complaint(&driver.run(&words));
    assert!(text.contains("no whole ELF file"), "{text}");
}
