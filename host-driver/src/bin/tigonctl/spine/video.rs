//! `tigonctl spine video`: a screen whose windows the card fills, and the server of their videos.

use std::fs::File;
use std::io::BufWriter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use host_driver::peer::DatagramWire;
use host_driver::status::Application;
use serde_json::json;
use spine_linker::endpoint::HandlerOf;
use spine_linker::video::test_card::{self, TestCard};
use spine_linker::video::{self, PLACE, Screen, WINDOWS, line, placement};

use super::SIZES;
use crate::cli::{Arguments, ServeOptions, ShowOptions, VideoAction};
use crate::connect::seconds;
use crate::output::Output;
use crate::rss::driver;

/// The server's Ethernet address, a local one.
const SERVER: [u8; 6] = [0x02, 0x54, 0x47, 0x00, 0x00, 0x03];
/// Between two looks for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(20);
/// While the card's side of the socket has no room.
const FULL: Duration = Duration::from_micros(200);

/// `tigonctl spine video`
pub(super) fn video(
    arguments: &Arguments,
    action: &VideoAction,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    match action {
        VideoAction::Show(options) => show(arguments, options, output, stop),
        VideoAction::Serve(options) => serve(options, output, stop),
    }
}

/// A screen with windows until Ctrl-C; then its picture.
fn show(
    arguments: &Arguments,
    options: &ShowOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let end = options.seconds.map(seconds).transpose()?;
    let count = options.windows.len();
    ensure!(count <= WINDOWS as usize, "there are {WINDOWS} windows");
    let screen = options.screen;
    let source = driver(arguments)?;
    let mut application = source.open_screen(SIZES, options.domain, screen.bytes())?;
    let patience = Duration::from_millis(options.patience);
    for (number, window) in (0..).zip(&options.windows) {
        let serial = number + 1;
        let words = placement(&screen, number, video::AT_ONCE, serial, window);
        let to = HandlerOf {
            domain: options.domain,
            handler: PLACE,
        };
        application.send(to, &words)?;
        let answer = application.receive(patience)?;
        let answer = answer.with_context(|| format!("window {number} is not placed"))?;
        if answer.arguments != [number, serial] {
            bail!("window {number} is not placed: {:?}", answer.arguments);
        }
    }
    let value = json!({ "windows": count, "bytes": screen.bytes() });
    output.result("ready", value, &format!("ready: {count} windows"));
    let begun = Instant::now();
    while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| begun.elapsed() < end) {
        // Ends with an error when the driver goes.
        let _ = application.receive(PAUSE)?;
    }
    let path = &options.png;
    write(&application, &screen, path).with_context(|| path.display().to_string())?;
    let value = json!({ "png": path, "width": screen.width, "height": screen.height });
    output.result(
        "screen",
        value,
        &format!("{} is the screen", path.display()),
    );
    Ok(())
}

/// Writes what a screen shows as PNG.
fn write(application: &Application, screen: &Screen, path: &std::path::Path) -> Result<()> {
    let mut bytes = vec![0; screen.bytes() as usize];
    application.read_screen(0, &mut bytes)?;
    let lines = bytes.chunks_exact(screen.pitch as usize);
    let pixels = lines.flat_map(|line| {
        line.chunks_exact(1 << screen.depth)
            .take(screen.width as usize)
    });
    let colours: Vec<u8> = pixels.flat_map(test_card::colour).collect();
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, screen.width, screen.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&colours)?;
    Ok(writer.finish()?)
}

/// Sends test cards, each line when it is due.
fn serve(options: &ServeOptions, output: &Output, stop: &AtomicBool) -> Result<()> {
    let ServeOptions { size, windows, .. } = options;
    let rate = options.rate;
    let line_time = Duration::try_from_secs_f64(f64::from(size.pitch) * 8.0 / (rate * 1e6))
        .with_context(|| format!("{rate} Mb/s is no rate"))?;
    let mut wire = DatagramWire::bind(&options.local, &options.remote)
        .with_context(|| format!("socket {}", options.local.display()))?;
    let ready = format!("ready: {}", options.local.display());
    output.result("ready", json!({ "local": options.local }), &ready);
    let begun = Instant::now();
    let (mut lines, mut frames) = (0u32, 0u64);
    let pictures = 0..options.pictures.unwrap_or(u32::MAX);
    'server: for picture in pictures {
        for at in 0..size.height {
            let due = begun + line_time * lines;
            lines = lines.wrapping_add(1);
            while let Some(early) = due.checked_duration_since(Instant::now()) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(early.min(PAUSE));
            }
            for window in 0..*windows {
                let card = TestCard {
                    window,
                    picture,
                    width: size.width,
                    height: size.height,
                };
                for (piece, pixels) in card.pieces(at, size.depth) {
                    let frame = line(options.station.0, SERVER, &piece, &pixels);
                    while !wire.send_frame(&frame)? {
                        if stop.load(Ordering::Relaxed) {
                            break 'server;
                        }
                        std::thread::sleep(FULL);
                    }
                    frames += 1;
                }
            }
            if stop.load(Ordering::Relaxed) {
                break 'server;
            }
        }
    }
    let lost = wire.lost;
    let text = format!("{frames} frames, {lost} of them to nobody");
    output.result("served", json!({ "frames": frames, "lost": lost }), &text);
    Ok(())
}
