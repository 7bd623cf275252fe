//! Tests the boot from the card's EEPROM: the real boot code, in the simulator.

use boot_slots::geometry::PAGE_BYTES;
use boot_slots::record::Found;
use boot_slots::select::Reason;
use boot_slots::update::Choices;
use boot_slots::{BoardId, Geometry, Record, Slot, Storage};
use host_driver::flash::signature::TrustedKey;
use host_driver::flash::{FlashError, Flasher};
use host_driver::nic::Link;
use host_driver::{Config, Nic, NicError};
use host_interface::extension::{BootReport, BootSource, Extension};
use host_interface::image::{Image, Version};
use integration_tests::engine::tools;
use integration_tests::{Engine, Qemu};
use integration_tests::{frames, stage};
use std::io::IoSlice;
use std::time::Duration;
use testbed::card::CardOptions;
use testbed::firmware::flash::{board_id, signed};
use tigon2_chip::bits::CpuState;
use tigon2_chip::{Cpu, Register};
use tigon2_model::Board;
use tigon2_sim::{Machine, SimTransport};

/// The boot code leaves the EEPROM alone for 50 ms, and takes 1.2 s for the firmware.
const LONG_ENOUGH: u64 = 88_000_000 * 3;

/// The contents of an EEPROM, on the desk.
#[derive(Clone)]
struct Desk {
    bytes: Vec<u8>,
    /// Writes after which the power is off, in the middle of the next one.
    writes_left: Option<usize>,
    writes: usize,
}

impl Desk {
    fn new() -> Desk {
        Desk {
            bytes: Machine::new(Board::default()).eeprom_mut().bytes().to_vec(),
            writes_left: None,
            writes: 0,
        }
    }

    fn install(&mut self, file: &[u8], choices: Choices) -> Result<Slot, FlashError> {
        let trusted = TrustedKey::from_environment()?;
        let bytes = self.bytes.len() as u32;
        let mut flasher = Flasher::new(&mut *self, bytes, board(), trusted)?;
        flasher.install(file, choices, &mut |_, _, _| {})
    }
}

impl Storage for &mut Desk {
    type Error = &'static str;

    fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), Self::Error> {
        out.copy_from_slice(&self.bytes[at as usize..][..out.len()]);
        Ok(())
    }

    fn write(&mut self, at: u32, new: &[u8]) -> Result<(), Self::Error> {
        let cells = &mut self.bytes[at as usize..][..new.len()];
        if self.writes_left == Some(self.writes) {
            let half = new.len() / 2;
            cells[..half].copy_from_slice(&new[..half]);
            return Err("no power");
        }
        cells.copy_from_slice(new);
        self.writes += 1;
        Ok(())
    }
}

fn board() -> BoardId {
    board_id(&Board::default())
}

/// Eight words that stop at once, and a length and a number to know them by.
fn small(build: u32) -> Vec<u8> {
    const BREAK: u32 = 0x0000_000D;
    let words = 64 + build * 16;
    let code: Vec<u8> = [BREAK]
        .into_iter()
        .chain((1..words).map(|n| n ^ build << 16))
        .flat_map(u32::to_be_bytes)
        .collect();
    let version = Version {
        major: 0,
        minor: 1,
        fix: build as u8,
    };
    let image = Image::new(version, 0x4000, 0x4000, &code).expect("an image");
    let file = [image.header().as_slice(), image.code()].concat();
    signed(&file, &build.to_be_bytes(), &Board::default(), 0).expect("the development key")
}

fn firmware() -> Vec<u8> {
    let elf = std::fs::read(&tools().firmware.elf).expect("the firmware's ELF");
    signed(&stage::firmware(), &elf, &Board::default(), 0).expect("the development key")
}

/// A card with the boot code and this EEPROM, before power comes on.
fn card(eeprom: &[u8]) -> Machine {
    let mut machine = Machine::new(Board::default());
    let code = std::fs::read(tools().boot).expect("the boot code");
    machine.set_boot_code(&code).expect("it fits");
    machine.eeprom_mut().load(eeprom);
    machine
}

/// What a card does by itself when power comes on.
#[derive(Debug, PartialEq)]
enum Booted {
    /// It runs the image of this build from a slot.
    Started(u32, Slot, bool),
    Blank,
    Failed(Reason, Reason),
}

fn boot(machine: &mut Machine) -> Booted {
    machine.reset();
    let limit = machine.cycle() + LONG_ENOUGH;
    let running = |machine: &Machine| machine.cpus().core(Cpu::A).running();
    machine.run_until(limit, |machine| !running(machine));
    assert!(!running(machine), "it comes to an end");
    let source = machine.word(Extension::BootSource.nic_address());
    let report = machine.word(Extension::BootReport.nic_address());
    let state = CpuState::from_bits(machine.bar_read(Register::CpuAState.offset()));
    if let Some(source) = BootSource::from_word(source) {
        assert_eq!(machine.fault(Cpu::A).map(|(_, pc)| pc), Some(0x4000));
        assert!(!state.rom_failed());
        let build = machine.word(0x4004) >> 16;
        let words = 64 + build * 16;
        for n in 1..words {
            assert_eq!(machine.word(0x4000 + 4 * n), n ^ build << 16, "word {n}");
        }
        let slot = Slot::from_index(source.slot().into()).expect("a slot");
        return Booted::Started(build, slot, source.trial());
    }
    let pc = machine.bar_read(Register::CpuAPc.offset());
    let report = BootReport::from_word(report).unwrap_or_else(|| {
        let fault = machine.fault(Cpu::A);
        panic!("no report: PC {pc:#x}, state {state:?}, {fault:?}")
    });
    assert_eq!(machine.fault(Cpu::A), None, "it halted itself");
    assert_eq!(state.rom_failed(), !report.blank());
    let reason = |number: u8| Reason::ALL[usize::from(number)];
    if report.blank() {
        Booted::Blank
    } else {
        Booted::Failed(reason(report.slot_0()), reason(report.slot_1()))
    }
}

/// Reference 3.4, bit 4 (I): a card with nothing to start waits for its host; with
/// something that cannot be started it says "PROM failed".
#[test]
fn a_blank_card_waits_and_a_damaged_one_says_so() {
    assert_eq!(boot(&mut card(&Desk::new().bytes)), Booted::Blank);
    let mut desk = Desk::new();
    desk.install(&small(1), Choices::CONFIRMED).expect("room");
    let mut machine = card(&desk.bytes);
    assert_eq!(boot(&mut machine), Booted::Started(1, Slot::Zero, false));
    desk.bytes[0x500 + 7] ^= 0x20;
    let failed = Booted::Failed(Reason::Crc, Reason::Empty);
    assert_eq!(boot(&mut card(&desk.bytes)), failed);
    desk.bytes[0x100] ^= 1;
    let failed = Booted::Failed(Reason::None, Reason::None);
    assert_eq!(boot(&mut card(&desk.bytes)), failed);
}

#[test]
fn an_image_that_is_not_confirmed_gives_way_after_three_boots() {
    let mut desk = Desk::new();
    desk.install(&small(1), Choices::CONFIRMED).expect("room");
    desk.install(&small(2), Choices::TRIAL).expect("room");
    let mut machine = card(&desk.bytes);
    // A part that takes its time to write.
    machine.eeprom_mut().set_busy_selects(40);
    for _ in 0..3 {
        assert_eq!(boot(&mut machine), Booted::Started(2, Slot::One, true));
    }
    for _ in 0..2 {
        assert_eq!(boot(&mut machine), Booted::Started(1, Slot::Zero, false));
    }
    assert_eq!(machine.eeprom_mut().writes(), 3);
    assert_eq!(machine.eeprom_mut().bytes()[..0x100], desk.bytes[..0x100]);
}

/// The power is cut in the middle of each write of an update.
#[test]
fn whatever_write_is_cut_the_card_boots_the_old_or_the_new_image() {
    let mut before = Desk::new();
    before.install(&small(1), Choices::CONFIRMED).expect("room");
    before.writes = 0;
    let mut whole = before.clone();
    whole.install(&small(2), Choices::CONFIRMED).expect("room");
    for cut in 0..whole.writes {
        let mut desk = before.clone();
        desk.writes_left = Some(cut);
        assert!(desk.install(&small(2), Choices::CONFIRMED).is_err());
        let booted = boot(&mut card(&desk.bytes));
        assert_eq!(booted, Booted::Started(1, Slot::Zero, false), "write {cut}");
    }
    let new = Booted::Started(2, Slot::One, false);
    assert_eq!(boot(&mut card(&whole.bytes)), new);
}

/// Bits here and there: the boot code in the card decides as the library does, which is
/// tried with every single bit where it is tested.
#[test]
fn a_flipped_bit_never_starts_a_damaged_image() {
    let mut desk = Desk::new();
    desk.install(&small(1), Choices::CONFIRMED).expect("room");
    desk.install(&small(2), Choices::TRIAL).expect("room");
    let geometry = Geometry::of(desk.bytes.len() as u32).expect("room");
    let (zero, one) = (
        geometry.header_at(Slot::Zero),
        geometry.header_at(Slot::One),
    );
    let places = [0x100, 0x13F, 0x208, 0x218, 0x8E]
        .into_iter()
        .chain([zero, zero + 127, zero + PAGE_BYTES, one + 9, one + 60])
        .chain([one + PAGE_BYTES, one + PAGE_BYTES + 101, one + 200]);
    for (n, place) in places.enumerate() {
        let mut flipped = desk.clone();
        flipped.bytes[place as usize] ^= 1 << (n % 8);
        // `boot` compares the image that runs word by word.
        let booted = boot(&mut card(&flipped.bytes));
        assert!(
            matches!(booted, Booted::Started(..)),
            "{place:#x}: {booted:?}"
        );
        let of_new = (one..one + 128).contains(&place) || place >= one + PAGE_BYTES;
        if of_new {
            assert_eq!(booted, Booted::Started(1, Slot::Zero, false), "{place:#x}");
        }
    }
}

/// The EEPROM of a fibre card in a copper card.
#[test]
fn an_image_for_another_board_is_not_started() {
    let mut desk = Desk::new();
    desk.install(&small(1), Choices::CONFIRMED).expect("room");
    let mut machine = Machine::new(Board::copper());
    let code = std::fs::read(tools().boot).expect("the boot code");
    machine.set_boot_code(&code).expect("it fits");
    machine.eeprom_mut().load(&desk.bytes);
    let failed = Booted::Failed(Reason::OtherBoard, Reason::Empty);
    assert_eq!(boot(&mut machine), failed);
}

/// From a file to a card that carries frames with its own firmware, and keeps it.
#[test]
fn our_driver_flashes_a_card_boots_it_and_confirms() -> Result<(), NicError> {
    let transport = SimTransport::new(card(&Desk::new().bytes));
    let machine = transport.machine();
    let station = machine.lock().card().eeprom().mac_address();
    let mut nic = Nic::probe(transport, Config::default())?;
    let nothing = nic.boot().expect_err("the EEPROM is blank");
    let text = nothing.to_string();
    let said = "the card has not booted: the EEPROM holds no firmware (CPU A is halted";
    assert!(text.starts_with(said), "{text}");

    // Over the two wires, as on a real card.
    let trusted = TrustedKey::from_environment().map_err(FlashError::from)?;
    let mut flasher = nic.flasher(trusted)?;
    let slot = flasher.install(&firmware(), Choices::TRIAL, &mut |_, _, _| {})?;
    assert_eq!(slot, Slot::Zero);

    let own = nic.boot()?;
    assert_eq!((own.slot, own.confirmed_now), (Slot::Zero, true));
    nic.open()?;
    assert_eq!(nic.wait_link(Duration::from_secs(5))?, Link::Gigabit);
    for number in 0..20 {
        let frame = frames::numbered(frames::PEER, station, number);
        assert!(nic.queue(&[IoSlice::new(&frame)])?);
        nic.submit()?;
        nic.wait(Duration::from_millis(1))?;
        nic.service()?;
        let sent = machine.lock().take_frame().map(|frame| frame.bytes);
        assert_eq!(sent.as_deref(), Some(frame.as_slice()), "frame {number}");
    }
    // A card that boots its own firmware recovers with it.
    nic.recover()?;
    let again = nic.boot()?;
    assert!(!again.confirmed_now, "it is confirmed already");
    let record = nic.flasher(trusted)?.record()?.expect("a record");
    assert!(record.slot(Slot::Zero).confirmed);
    assert_eq!(machine.lock().card().eeprom().mac_address(), station);
    Ok(())
}

/// A driver that brings its own firmware takes the card at any moment of its boot.
#[test]
fn a_driver_with_its_own_firmware_takes_a_card_that_boots() -> Result<(), NicError> {
    let mut desk = Desk::new();
    desk.install(&firmware(), Choices::CONFIRMED).expect("room");
    let file = stage::firmware();
    // In the grace, in the middle of a byte of the EEPROM, and when its firmware waits.
    for cycles in [
        1_000,
        4_500_000,
        6_000_123,
        20_000_456,
        60_000_789,
        LONG_ENOUGH,
    ] {
        let mut machine = card(&desk.bytes);
        machine.reset();
        machine.run(cycles);
        let mut nic = Nic::probe(SimTransport::new(machine), Config::default())?;
        assert_eq!(
            nic.identity().station,
            [0x00, 0x60, 0xCF, 0, 0, 1],
            "{cycles}"
        );
        nic.load(&file)?;
        nic.open()?;
        nic.wait_link(Duration::from_secs(5))?;
        nic.shut_down()?;
    }
    Ok(())
}

/// The driver does not let an image on trial become permanent that nobody signed.
#[test]
fn an_unsigned_image_on_trial_is_not_booted() -> Result<(), NicError> {
    let mut desk = Desk::new();
    desk.install(&firmware(), Choices::TRIAL).expect("room");
    // Somebody writes past the tools: the CRCs are right, the signature is not.
    let geometry = Geometry::of(desk.bytes.len() as u32).expect("room");
    let at = geometry.header_at(Slot::Zero) as usize;
    desk.bytes[at + 70] ^= 1;
    let crc = boot_slots::CRC.checksum(&desk.bytes[at..at + 124]);
    desk.bytes[at + 124..at + 128].copy_from_slice(&crc.to_be_bytes());
    let Ok(Found::Record(mut record, _)) = Record::find(&mut &mut desk) else {
        panic!("there is a record");
    };
    record.slots[0].header_crc = crc;
    record.write(&mut &mut desk).expect("power is on");

    let refused = |desk: &Desk| -> Result<String, NicError> {
        let transport = SimTransport::new(card(&desk.bytes));
        let mut nic = Nic::probe(transport, Config::default())?;
        Ok(nic.boot().expect_err("not signed").to_string())
    };
    let text = "slot 0: the image is not signed with the trusted key";
    assert_eq!(refused(&desk)?, text);
    // Nor if it is what the card falls back to.
    let slot = desk.install(&small(2), Choices::CONFIRMED).expect("room");
    assert_eq!(slot, Slot::One);
    let image = geometry.image_at(Slot::One) as usize;
    desk.bytes[image] ^= 1;
    assert_eq!(refused(&desk)?, text);
    Ok(())
}

/// With a required key a card does not start what anybody could have signed, also if it was
/// confirmed long ago.
#[test]
fn a_required_key_keeps_the_development_key_out() -> Result<(), Box<dyn std::error::Error>> {
    let mut desk = Desk::new();
    desk.install(&firmware(), Choices::CONFIRMED)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("mine.pub");
    // The public key of RFC 8032's first test.
    let key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    std::fs::write(&path, key)?;
    let config = Config {
        required_key: Some(TrustedKey::required(&path)?),
        ..Config::default()
    };
    let mut nic = Nic::probe(SimTransport::new(card(&desk.bytes)), config)?;
    let refused = nic.boot().expect_err("signed by anybody").to_string();
    assert!(refused.starts_with("slot 0: "), "{refused}");
    assert!(refused.contains("development key"), "{refused}");
    // Its driver can bring firmware of its own.
    nic.load(&stage::firmware())?;
    nic.shut_down()?;
    Ok(())
}

/// The same in QEMU, whose EEPROM is in a file: flashed there, booted, confirmed, and kept.
#[test]
fn qemu_boots_from_its_eeprom_file() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let eeprom = folder.path().join("eeprom");
    let mut desk = Desk::new();
    desk.install(&firmware(), Choices::TRIAL)?;
    std::fs::write(&eeprom, &desk.bytes)?;
    let options = CardOptions {
        boot: Some(tools().boot),
        eeprom: Some(eeprom.clone()),
        ..CardOptions::default()
    };
    let (mut engine, transport) = Qemu::with(&options);
    let mut nic = Nic::probe(transport, Config::default())?;
    let own = nic.boot()?;
    assert_eq!((own.slot, own.confirmed_now), (Slot::Zero, true));
    nic.open()?;
    assert_eq!(nic.wait_link(Duration::from_secs(10))?, Link::Gigabit);
    let frame = frames::numbered(frames::PEER, nic.station(), 7);
    assert!(nic.queue(&[IoSlice::new(&frame)])?);
    nic.submit()?;
    assert_eq!(engine.receive().as_deref(), Some(frame.as_slice()));
    drop(nic.shut_down()?);
    engine.card.check()?;
    // The file is written when the driver has gone.
    let end = std::time::Instant::now() + Duration::from_secs(10);
    let confirmed = || -> std::io::Result<bool> {
        desk.bytes = std::fs::read(&eeprom)?;
        let found = Record::find(&mut &mut desk);
        let Ok(Found::Record(record, _)) = found else {
            return Ok(false);
        };
        Ok(record.slot(Slot::Zero).confirmed)
    };
    let mut confirmed = confirmed;
    while !confirmed()? {
        assert!(std::time::Instant::now() < end, "the confirmation is kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
