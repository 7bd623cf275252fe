//! `tigonctl flash`: firmware in the card's EEPROM.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use boot_slots::update::{Choices, Downgrade, Step};
use boot_slots::{BoardId, Slot, Storage};
use host_driver::Config;
use host_driver::flash::signature::TrustedKey;
use host_driver::flash::{BoardFile, EepromReport, FileEeprom, FlashError, Flasher, hex};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tigon2_chip::eeprom::{MAC_OFFSET, MAX_BYTES, mac_block};

use super::cli::{Arguments, BoardChoice, FlashAction, FlashOptions};
use super::connect::connect;
use super::output::Output;

/// Station address of a new EEPROM.
const FIRST_STATION: [u8; 6] = [0x00, 0x60, 0xCF, 0x00, 0x00, 0x01];

/// `tigonctl flash`
pub fn flash(arguments: &Arguments, options: &FlashOptions, output: &Output) -> Result<()> {
    // Errors that need no card come first.
    let input = Input::read(&options.action)?;
    let (board, trusted) = terms(options)?;
    if let Some(path) = &options.eeprom {
        let bytes = match std::fs::metadata(path) {
            Ok(file) => u32::try_from(file.len()).unwrap_or(u32::MAX),
            Err(_) => MAX_BYTES,
        };
        let file = FileEeprom::open(path, bytes, &first_page())
            .with_context(|| format!("EEPROM file {}", path.display()))?;
        let mut flasher = Flasher::new(file, bytes, board, trusted)?;
        act(&mut flasher, options, &input, output)?;
        let file = flasher.into_storage();
        return file
            .save()
            .with_context(|| format!("EEPROM file {}", path.display()));
    }
    let mut nic = connect(arguments, Config::default())?;
    let mut flasher = nic.flasher(trusted)?;
    let result = act(&mut flasher, options, &input, output);
    nic.shut_down()?;
    result
}

/// The board of the EEPROM, and the trusted key: the command line has precedence over a board
/// file, and that over the environment.
fn terms(options: &FlashOptions) -> Result<(BoardId, TrustedKey)> {
    let (board, of_board) = match &options.board {
        BoardChoice::Ids(board) => (*board, None),
        BoardChoice::File(path) => {
            let file = BoardFile::read(path)?;
            (file.board, file.require_key)
        }
    };
    let trusted = match options.require_key.as_ref().or(of_board.as_ref()) {
        Some(path) => TrustedKey::required(path)?,
        None => TrustedKey::from_environment()?,
    };
    Ok((board, trusted))
}

/// The manufacturing data of a new EEPROM.
fn first_page() -> Vec<u8> {
    let mut page = vec![0xFF; usize::from(MAC_OFFSET)];
    page.extend(mac_block(FIRST_STATION));
    page
}

/// The input file of an action.
struct Input(Vec<u8>);

impl Input {
    fn read(action: &FlashAction) -> Result<Self> {
        let path = match action {
            FlashAction::Install { image, .. } => image,
            FlashAction::Restore { file, .. } => file,
            _ => return Ok(Self(Vec::new())),
        };
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        Ok(Self(bytes))
    }
}

fn act<S: Storage>(
    flasher: &mut Flasher<S>,
    options: &FlashOptions,
    input: &Input,
    output: &Output,
) -> Result<()>
where
    S::Error: Display,
{
    let bar = Bar::new(output);
    let mut progress = |step, done, all| bar.show(step, done, all);
    let key = flasher.trusted().to_string();
    match &options.action {
        FlashAction::Info => {
            let report = flasher.report(&mut progress)?;
            bar.done();
            output.result(
                "flash",
                serde_json::to_value(&report)?,
                &report_text(&report),
            );
        }
        FlashAction::Install {
            image,
            slot,
            confirmed,
            allow_downgrade,
        } => {
            let choices = Choices {
                slot: *slot,
                confirmed: *confirmed,
                downgrade: downgrade(*allow_downgrade),
            };
            let slot = flasher
                .install(&input.0, choices, &mut progress)
                .with_context(|| image.display().to_string())?;
            bar.done();
            let state = if *confirmed { "confirmed" } else { "on trial" };
            let text = format!("installed in {slot}, {state}; signature: {key}");
            let value = json!({ "slot": slot.index(), "confirmed": confirmed, "key": key });
            output.result("installed", value, &text);
        }
        FlashAction::Verify { slot } => {
            let slots = slot.map_or(Slot::ALL.to_vec(), |slot| vec![slot]);
            let mut images = 0;
            for one in slots {
                let header = match flasher.verify(one, &mut progress) {
                    // A card with one image is fine.
                    Err(FlashError::Empty { .. }) if slot.is_none() => continue,
                    header => header?,
                };
                bar.done();
                images += 1;
                let build = hex(&header.build_id);
                let version = header.version;
                let text =
                    format!("{one}: version {version}, build {build}, good; signature: {key}");
                let value = json!({
                    "slot": one.index(),
                    "version": header.version.to_string(),
                    "build_id": build,
                    "key": key,
                });
                output.result("verified", value, &text);
            }
            bar.done();
            ensure!(images > 0, "there is no image in either slot");
        }
        FlashAction::Backup { file } => {
            let contents = flasher.backup(&mut progress)?;
            bar.done();
            write_whole(file, &contents)?;
            let text = format!("{} bytes in {}", contents.len(), file.display());
            output.result("backup", json!({ "bytes": contents.len() }), &text);
        }
        FlashAction::Restore {
            file,
            allow_downgrade,
        } => {
            flasher
                .restore(&input.0, downgrade(*allow_downgrade), &mut progress)
                .with_context(|| file.display().to_string())?;
            bar.done();
            let text = "restored; the manufacturing data are the card's own";
            output.result("restored", json!({ "bytes": input.0.len() }), text);
        }
        FlashAction::Confirm { slot } => {
            flasher.confirm(*slot)?;
            let text = format!("{slot} is confirmed");
            output.result("confirmed", json!({ "slot": slot.index() }), &text);
        }
        FlashAction::Prefer {
            slot,
            allow_downgrade,
        } => {
            flasher.prefer(*slot, downgrade(*allow_downgrade))?;
            let text = format!("{slot} comes first");
            output.result("preferred", json!({ "slot": slot.index() }), &text);
        }
    }
    Ok(())
}

/// Writes a backup atomically: a full disk does not destroy an older one.
fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".new");
    let partial = PathBuf::from(partial);
    std::fs::write(&partial, contents)
        .and_then(|()| std::fs::rename(&partial, path))
        .with_context(|| path.display().to_string())
}

fn report_text(report: &EepromReport) -> String {
    let mut lines = vec![if report.record {
        format!(
            "EEPROM {} bytes, {} for an image, boot record {}, rollback counter {}",
            report.bytes, report.slot_bytes, report.sequence, report.counter
        )
    } else {
        format!("EEPROM {} bytes, no boot record", report.bytes)
    }];
    for slot in &report.slots {
        let mark = if slot.preferred { "*" } else { " " };
        let trust = match (slot.confirmed, slot.trials) {
            (true, _) => "confirmed".to_owned(),
            (false, trials) => format!("{trials} trial boots left"),
        };
        let signature = slot.key.as_ref().unwrap_or(&slot.signature);
        let counter = slot.counter.unwrap_or(0);
        lines.push(match (&slot.version, slot.bytes, &slot.build_id) {
            (Some(version), Some(bytes), Some(build)) => format!(
                "{mark} slot {}: version {version}, counter {counter}, {bytes} bytes, \
                 build {build}, {trust}; {}; signature: {signature}",
                slot.slot, slot.state
            ),
            _ => format!("{mark} slot {}: {}", slot.slot, slot.state),
        });
    }
    lines.join("\n")
}

/// The progress of reading and writing, on a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new(output: &Output) -> Self {
        if output.is_json() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        let template = "{msg:7} [{bar:40}] {bytes}/{total_bytes} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    fn show(&self, step: Step, done: u32, all: u32) {
        let name = match step {
            Step::Look => "look",
            Step::Write => "write",
            Step::Verify => "verify",
        };
        self.0.set_message(name);
        self.0.set_length(all.into());
        self.0.set_position(done.into());
    }

    fn done(&self) {
        self.0.finish_and_clear();
    }
}

/// Whether an older image is accepted.
fn downgrade(allowed: bool) -> Downgrade {
    if allowed {
        Downgrade::Allow
    } else {
        Downgrade::Refuse
    }
}
