//! Tests that the firmware builds, fits, has only allowed instructions, and runs as MIPS code.

use host_driver::log::LogTexts;
use host_driver::{Config, Nic};
use host_interface::extension::{Extension, Handler};
use host_interface::image::Image;
use object::elf::{SHF_ALLOC, SHF_EXECINSTR};
use object::{Object, ObjectSection};
use std::io::IoSlice;
use std::time::Duration;

use testbed::firmware::{self, FirmwareArtifacts, FirmwareOptions, Placement, isa};
use tigon2_model::Board;
use tigon2_sim::transport::SimTransport;

fn build() -> FirmwareArtifacts {
    build_placed(Placement::default())
}

fn build_placed(placement: Placement) -> FirmwareArtifacts {
    let options = FirmwareOptions {
        quiet: true,
        placement,
        ..FirmwareOptions::default()
    };
    firmware::build(options).expect("the firmware builds")
}

#[test]
fn the_firmware_builds_and_fits() {
    let artifacts = build();
    let elf = std::fs::read(&artifacts.elf).expect("the ELF");
    assert_eq!(isa::check(&elf).expect("an ELF"), []);
    for memory in &artifacts.sizes.memories {
        assert!(memory.used <= memory.there, "{memory}");
    }

    let file = std::fs::read(&artifacts.tg2).expect("the image");
    let image = Image::parse(&file).expect("the drivers' format");
    assert_eq!((image.start(), image.load()), (0x4000, 0x4000));
}

/// A debugger takes an address for what the sections say that it is: where one CPU has hot code,
/// the other's state must not claim it.
#[test]
fn a_debugger_finds_code_at_the_addresses_of_code() {
    let elf = std::fs::read(build().elf).expect("the ELF");
    let file = object::File::parse(&*elf).expect("an ELF");
    let flags = |section: &object::Section<'_, '_>| match section.flags() {
        object::SectionFlags::Elf { sh_flags, .. } => sh_flags,
        other => panic!("not an ELF's flags: {other:?}"),
    };
    let (mut code, mut data) = (Vec::new(), Vec::new());
    for section in file
        .sections()
        .filter(|section| section.file_range().is_some())
    {
        let place = section.address()..section.address() + section.size();
        let name = section.name().expect("a name").to_owned();
        match flags(&section) {
            flags if !flags.contains(SHF_ALLOC) => (),
            flags if flags.contains(SHF_EXECINSTR) => code.push((name, place)),
            _ => data.push((name, place)),
        }
    }
    assert!(code.len() > 3 && data.len() > 2, "{code:x?} {data:x?}");
    for (name, place) in &data {
        let over = code
            .iter()
            .find(|(_, code)| code.start < place.end && place.start < code.end);
        assert!(over.is_none(), "{name} lies over {over:x?}");
    }
}

/// Everything at once on the simulator: start code, dispatch by the chip's own
/// instructions, both paths, the counts and the log.
#[test]
fn the_firmware_runs_as_mips_code() {
    runs(&build());
}

/// The bench measures what the scratch pads are worth, so each placement has to fit and to run.
#[test]
fn code_and_state_can_be_in_either_memory() {
    for placement in [
        Placement::SramCode,
        Placement::SramData,
        Placement::SramBoth,
    ] {
        runs(&build_placed(placement));
    }
}

fn runs(artifacts: &FirmwareArtifacts) {
    let file = std::fs::read(&artifacts.tg2).expect("the image");
    let elf = std::fs::read(&artifacts.elf).expect("the ELF");

    let transport = SimTransport::power_on(Board::default());
    let machine = transport.machine();
    let station = [0x00, 0x60, 0xCF, 0x20, 0x12, 0x34];
    machine.lock().set_mac_address(station);
    let mut nic = Nic::probe(transport, Config::default()).expect("a card");
    nic.load(&file).expect("the firmware comes up");
    nic.open().expect("the stack comes up");
    // Time of this computer: an unoptimised simulator is slow.
    nic.wait_link(Duration::from_secs(60)).expect("a link");

    let out = frame([2, 0, 0, 0, 0, 1], station);
    let pieces = [IoSlice::new(&out[..14]), IoSlice::new(&out[14..])];
    assert!(nic.queue(&pieces).expect("a frame"));
    nic.submit().expect("a doorbell");
    let into = frame(station, [2, 0, 0, 0, 0, 1]);
    machine.lock().send_frame(0, into.clone());
    let mut received = Vec::new();
    // The counts are copied each hundredth of a second.
    for _ in 0..15 {
        nic.wait(Duration::from_millis(1)).expect("a wait");
        nic.service().expect("a service");
        received.extend(nic.receive_batch(8).expect("frames"));
    }
    assert_eq!(received, [into]);
    assert_eq!(
        machine.lock().take_frame().map(|frame| frame.bytes),
        Some(out)
    );
    assert_eq!(nic.send_outstanding(), 0);

    let (frames, _) = nic.drain_log().expect("the log");
    let texts = LogTexts::parse(&elf).expect("the log's texts");
    let lines = texts.decoder().decode(&frames);
    assert!(
        lines.iter().any(|line| line.text.contains("link up")),
        "{lines:?}"
    );

    let machine = machine.lock();
    let counts = machine.word(Extension::HandlerCounts.nic_address());
    let count = |handler: Handler| machine.word(counts + 4 * handler.number());
    assert_eq!(count(Handler::ReceiveComplete), 1);
    assert!(
        count(Handler::SendDataReady) >= 1,
        "two BDs, in one run or two"
    );
    assert!(count(Handler::Timer) > 0);
    assert_eq!(count(Handler::DmaReadAttention), 0);
    assert_eq!(
        machine.card().undefined().count(),
        0,
        "{:?}",
        machine.card().undefined()
    );
}

fn frame(destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
    let mut frame = [destination.as_slice(), &source, &[0x88, 0xB5]].concat();
    frame.extend((0..1000u32).map(|n| ((n * 7) >> 2) as u8));
    frame
}
