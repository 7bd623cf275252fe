//! Tests the driver with correct firmware.

mod support;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use host_driver::capture::{FrameReader, FrameWriter};
use host_driver::nic::{Link, Notice, SendConsumer, SendRingSize};
use host_driver::replay::{Limits, record, replay};
use host_driver::transport::TransportError;
use host_driver::{Config, Nic, NicError};
use host_interface::gencom::Gencom;
use host_interface::image::{INTERFACE_VERSION, Image, ImageError};
use support::{STATION, ScriptedCard, firmware_file, frame, open_card};

#[test]
fn a_card_is_identified() {
    let nic = Nic::probe(ScriptedCard::default(), Config::default()).expect("a card");
    let identity = nic.identity();
    assert_eq!((identity.vendor, identity.device), (0x12AE, 1));
    assert_eq!(identity.revision, 6);
    assert_eq!(nic.station(), STATION);
}

/// Host/NIC software interface, "What an unmodified driver does at start".
#[test]
fn loading_follows_the_start_sequence() {
    let mut nic = Nic::probe(ScriptedCard::default(), Config::default()).expect("a card");
    let card = nic.transport();
    card.bench.set_word(0x2000, 0xDEAD_BEEF);
    card.bench.set_word(0x7_FFFC, 0xDEAD_BEEF);
    nic.load(&firmware_file()).expect("good firmware");
    let card = nic.transport();
    assert_eq!(card.bench.word(0x2000), 0, "the send ring is cleared");
    assert_eq!(
        card.bench.word(0x7_FFFC),
        0,
        "memory is cleared up to its end"
    );
    assert_eq!(card.bench.word(0x4000), 0x1122_3344);
    assert_eq!(card.bench.word(0x4000 + 2396), 0x1122_3344);
    assert_eq!(card.bench.word(0x4000 + 2400), 0);
    // Reference, "Linux settings" (C).
    for (word, value) in [
        (Gencom::OperatingMode, 0x4000_021C),
        (Gencom::MacAddressHigh, 0x0060),
        (Gencom::MacAddressLow, 0xCF20_1234),
        (Gencom::DmaReadConfig, 0x80),
        (Gencom::DmaWriteConfig, 0x80),
        (Gencom::TransmitShare, 21),
        (Gencom::GigabitLink, 0x70AF_0000),
        (Gencom::InterfaceMtu, 1518),
        (Gencom::InfoHigh, 1),
    ] {
        assert_eq!(
            card.bench.word(word.nic_address()),
            value,
            "{}",
            word.name()
        );
    }
    assert!(nic.has_extension());
    assert_eq!(nic.firmware_version(), INTERFACE_VERSION.to_string());
    nic.open().expect("a firmware that listens");
    assert_eq!(
        nic.wait_link(Duration::from_secs(1)).expect("a link"),
        Link::Gigabit
    );
    // Reference, "commands used": open: 0x0F, 0x01 code 1 (C).
    assert_eq!(nic.transport().commands, [0x0F00_0000, 0x0100_1000]);
    nic.close().expect("a firmware that listens");
    assert_eq!(nic.transport().commands[2], 0x0100_2000);
}

#[test]
fn frames_go_out_byte_for_byte_with_one_mailbox_write_a_batch() {
    let mut nic = open_card(Config::default());
    let frames: Vec<Vec<u8>> = (0..40).map(|seed| frame(seed, 14 + seed * 37)).collect();
    let slices: Vec<[IoSlice<'_>; 1]> = frames.iter().map(|f| [IoSlice::new(f)]).collect();
    let batch: Vec<&[IoSlice<'_>]> = slices.iter().map(|s| s.as_slice()).collect();
    nic.transport().forget_writes();
    assert_eq!(nic.send_batch(&batch).expect("an open card"), 40);
    let card = nic.transport();
    assert_eq!((card.send_rings, card.writes), (1, 1));
    assert_eq!(card.sent, frames);
    nic.service().expect("good indices");
    assert_eq!(nic.send_outstanding(), 0);
}

#[test]
fn a_scatter_list_becomes_one_frame_of_as_many_bds() {
    let mut nic = open_card(Config::default());
    let whole = frame(3, 1514);
    let mut rest = whole.as_slice();
    let mut fragments = Vec::new();
    for bytes in [1, 0, 13, 2, 61, 700] {
        let (now, later) = rest.split_at(bytes);
        fragments.push(IoSlice::new(now));
        rest = later;
    }
    fragments.push(IoSlice::new(rest));
    assert!(nic.queue(&fragments).expect("an open card"));
    nic.submit().expect("a card");
    let card = nic.transport();
    assert_eq!(card.sent, [whole]);
    let ends: Vec<bool> = card.sent_bds[0].iter().map(|bd| bd.flags().end()).collect();
    assert_eq!(ends, [false, false, false, false, false, true]);
}

#[test]
fn every_send_ring_wraps_three_times_with_every_frame_different() {
    for (size, entries) in [
        (SendRingSize::Entries128, 128),
        (SendRingSize::Entries256, 256),
        (SendRingSize::Entries512, 512),
    ] {
        let config = Config {
            send_ring: size,
            ..Config::default()
        };
        let mut nic = open_card(config);
        let count = 3 * entries + 7;
        let mut expected = Vec::new();
        for seed in 0..count {
            let frame = frame(seed, 60 + seed % 1400);
            while !nic.queue(&[IoSlice::new(&frame)]).expect("an open card") {
                nic.submit().expect("a card");
                nic.service().expect("good indices");
            }
            expected.push(frame);
        }
        nic.submit().expect("a card");
        nic.service().expect("good indices");
        assert_eq!(nic.transport().sent.len(), count);
        assert!(nic.transport().sent == expected);
        assert_eq!(nic.counters().frames_sent, count as u64);
    }
}

#[test]
fn the_return_ring_wraps_three_times_with_every_frame_different() {
    let mut nic = open_card(Config::default());
    let count = 3 * 2048 + 100;
    let mut waiting = VecDeque::new();
    let mut seen = 0;
    for seed in 0..count {
        let frame = frame(seed, 60 + seed % 1455);
        assert!(nic.transport().deliver(&frame), "a buffer is there");
        waiting.push_back(frame);
        if waiting.len() == 50 || seed == count - 1 {
            for received in nic.receive_batch(64).expect("good BDs") {
                assert_eq!(Some(received), waiting.pop_front());
                seen += 1;
            }
        }
    }
    assert_eq!(seen, count);
    assert_eq!(nic.drops().total(), 0);
    assert_eq!(
        nic.receive_outstanding(),
        usize::from(nic.config().receive_buffers)
    );
}

#[test]
fn a_full_send_ring_says_so_and_empties_again() {
    let mut nic = open_card(Config::default());
    nic.transport().faults.keeps_bds = true;
    let frame = frame(1, 100);
    let mut queued = 0;
    while nic.queue(&[IoSlice::new(&frame)]).expect("an open card") {
        queued += 1;
    }
    assert_eq!(queued, 511);
    assert_eq!(nic.send_room(), 0);
    let called = nic
        .queue_with(|_, _, _| panic!("there is no room to fill"))
        .expect("an open card");
    assert_eq!(called, None);
    nic.submit().expect("a card");
    nic.service().expect("not late yet");
    assert_eq!(nic.send_outstanding(), 511);
    nic.transport().report_sent();
    nic.service().expect("good indices");
    assert_eq!(nic.send_room(), 511);
}

#[test]
fn frames_are_filled_in_and_taken_in_place() {
    let mut nic = open_card(Config::default());
    let sent = frame(9, 777);
    let length = nic
        .queue_with(|memory, offset, room| {
            assert!(room >= 1518);
            memory
                .write_bytes(offset, &sent)
                .map_err(std::io::Error::other)?;
            Ok(sent.len())
        })
        .expect("an open card");
    assert_eq!(length, Some(777));
    let nothing = nic.queue_with(|_, _, _| Ok(0)).expect("an open card");
    assert_eq!(nothing, Some(0));
    nic.submit().expect("a card");
    assert_eq!(nic.transport().sent, std::slice::from_ref(&sent));
    nic.transport().deliver(&sent);
    let mut places = 0;
    nic.receive(8, |frame| {
        let (memory, pieces) = frame.pieces();
        let [(offset, bytes)] = *pieces else {
            panic!("one piece")
        };
        let mut copy = vec![0; bytes];
        memory.read_bytes(offset, &mut copy)?;
        assert_eq!(copy, sent);
        places += 1;
        Ok(())
    })
    .expect("good BDs");
    assert_eq!(places, 1);
}

/// Design: the driver reads the send consumer index by MMIO as the paper does.
#[test]
fn the_send_consumer_can_be_read_from_the_card() {
    let config = Config {
        send_consumer: SendConsumer::Register,
        ..Config::default()
    };
    let mut nic = open_card(config);
    assert!(
        nic.queue(&[IoSlice::new(&frame(1, 60))])
            .expect("an open card")
    );
    nic.submit().expect("a card");
    nic.service().expect("good indices");
    assert_eq!(nic.send_outstanding(), 0);
}

/// Another device has the send ring: BDs have the addresses of their buffers, and the driver sends
/// nothing.
#[test]
fn a_send_ring_is_lent() {
    let mut own = open_card(Config::default());
    let error = own.lend_ring().expect_err("the driver has it");
    assert!(matches!(error, NicError::RingNotLent), "{error}");
    let mut nic = open_card(Config {
        send_consumer: SendConsumer::At(0xE000_0838),
        ..Config::default()
    });
    let frame = frame(1, 60);
    let error = nic.queue(&[IoSlice::new(&frame)]).expect_err("it is lent");
    assert!(matches!(error, NicError::RingLent), "{error}");
    let ring = nic.lend_ring().expect("an open card");
    // A transport that maps no memory of others says so.
    let error = own.map_ring(&ring).expect_err("a scripted card");
    let is_typed = matches!(error, NicError::Transport(TransportError::NoForeignMemory));
    assert!(is_typed, "{error}");
}

#[test]
fn impossible_choices_are_brought_to_the_nearest_possible() {
    for (mtu, buffers, expected) in [(0, 0, (68, 1)), (u16::MAX, u16::MAX, (9000, 511))] {
        let config = Config {
            mtu,
            receive_buffers: buffers,
            ..Config::default()
        };
        let mut nic = open_card(config);
        assert_eq!((nic.config().mtu, nic.config().receive_buffers), expected);
        nic.transport().deliver(&frame(1, 60));
        assert_eq!(nic.receive_batch(8).expect("a good BD"), [frame(1, 60)]);
    }
}

#[test]
fn a_polling_driver_masks_interrupts_and_sees_frames() {
    let config = Config {
        notice: Notice::Polling,
        ..Config::default()
    };
    let mut nic = open_card(config);
    let mask = nic
        .transport()
        .bench
        .word(Gencom::MaskInterrupts.nic_address());
    assert_eq!(mask, 1);
    assert!(!nic.wait(Duration::from_millis(2)).expect("a card"));
    nic.transport().deliver(&frame(1, 60));
    assert!(nic.wait(Duration::from_millis(100)).expect("a card"));
    assert_eq!(nic.receive_batch(8).expect("good BDs").len(), 1);
    assert_eq!(nic.counters().interrupts, 0);
}

/// The acknowledgement must have reached the card before the rings are looked at, and
/// writes may be posted: it is read back, as Linux does (reference, "order in the
/// handler").
#[test]
fn waiting_acknowledges_and_makes_sure_that_it_arrived() {
    let mut nic = open_card(Config::default());
    while nic.wait(Duration::ZERO).expect("a card") {}
    for _ in 0..3 {
        nic.transport().deliver(&frame(1, 60));
        nic.transport().accesses = Some(Vec::new());
        assert!(nic.wait(Duration::from_millis(100)).expect("a card"));
        let accesses = nic.transport().accesses.take();
        assert_eq!(accesses, Some(vec![(true, 0x504), (false, 0x504)]));
    }
}

#[test]
fn statistics_gather_what_everybody_counts() {
    let mut nic = open_card(Config::default());
    nic.queue(&[IoSlice::new(&frame(1, 60))])
        .expect("an open card");
    nic.submit().expect("a card");
    let statistics = nic.statistics().expect("a firmware that answers");
    assert_eq!(statistics.driver.frames_sent, 1);
    assert_eq!(statistics.link, Link::Gigabit);
    let json = serde_json::to_value(&statistics).expect("plain data");
    assert_eq!(json["driver"]["bytes_sent"], 60);
    assert_eq!(json["link"], "gigabit");
    assert_eq!(json["driver_drops"]["bad_index"], 0);
}

#[test]
fn another_firmware_works_without_the_extension() {
    let mut card = ScriptedCard::default();
    card.faults.foreign = true;
    let config = Config {
        send_consumer: SendConsumer::Register,
        ..Config::default()
    };
    let mut nic = Nic::probe(card, config).expect("a card");
    nic.load(&firmware_file()).expect("good firmware");
    nic.open().expect("a firmware that listens");
    assert!(!nic.has_extension());
    nic.queue(&[IoSlice::new(&frame(1, 60))])
        .expect("an open card");
    nic.submit().expect("a card");
    nic.service().expect("good indices");
    assert_eq!(nic.send_outstanding(), 0);
    assert!(nic.drain_log().expect("no log").0.is_empty());
    assert_eq!(nic.handler_counts().expect("none").0, []);
}

#[test]
fn a_multicast_address_takes_three_entries_and_an_event() {
    let mut nic = open_card(Config::default());
    let before = nic.transport().commands.len();
    nic.add_multicast([0x01, 0, 0x5E, 0, 0, 0xFB])
        .expect("a firmware that answers");
    assert_eq!(nic.transport().commands[before..], [0x1200_0000]);
    // The ring goes round: 64 entries, three at a time.
    for _ in 0..50 {
        nic.add_multicast([0x01, 0, 0x5E, 0, 0, 0xFB])
            .expect("a firmware that answers");
    }
}

#[test]
fn images_that_cannot_be_loaded_leave_the_card_alone() {
    let mut nic = Nic::probe(ScriptedCard::default(), Config::default()).expect("a card");
    let good = firmware_file();
    let mut outside = good.clone();
    outside[8..12].copy_from_slice(&0x0010_0000u32.to_be_bytes());
    let mut start = good.clone();
    start[4..8].copy_from_slice(&0x0007_0000u32.to_be_bytes());
    nic.transport().forget_writes();
    for (file, what) in [
        (&good[..5], "no header"),
        (&good[..12], "no image"),
        (&good[..good.len() - 3], "cut in a word"),
        (&outside[..], "load address outside SRAM"),
        (&start[..], "start address outside the image"),
    ] {
        let error = nic.load(file).expect_err(what);
        assert!(matches!(error, NicError::Image(_)), "{what}: {error}");
    }
    assert_eq!(nic.transport().writes, 0, "the card was not touched");
    assert!(matches!(nic.open(), Err(NicError::WrongState { .. })));
}

/// A sealed file that is cut at a word boundary is recognised.
#[test]
fn a_sealed_image_that_is_cut_is_refused() {
    let mut code = [0x11, 0x22, 0x33, 0x44].repeat(100);
    let length = 12 + code.len() as u32 + 8;
    code.extend(host_interface::image::SEAL.to_be_bytes());
    code.extend(length.to_be_bytes());
    let image = Image::new(INTERFACE_VERSION, 0x4000, 0x4000, &code).expect("a good image");
    let mut file = [image.header().as_slice(), &code].concat();
    file[3] = host_interface::image::SEALED;
    let mut nic = Nic::probe(ScriptedCard::default(), Config::default()).expect("a card");
    let error = nic
        .load(&file[..file.len() / 8 * 4])
        .expect_err("it is cut");
    assert!(
        matches!(error, NicError::Image(ImageError::Damaged(_))),
        "{error}"
    );
    nic.load(&file).expect("the whole file is good");
}

#[test]
fn a_capture_is_replayed_whole_and_recorded_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.pcap");
    let frames: Vec<Vec<u8>> = (0..1300)
        .map(|seed| frame(seed, 42 + seed % 1470))
        .collect();
    let mut writer = FrameWriter::create(&path).expect("a file");
    for frame in &frames {
        writer.write(Duration::ZERO, frame).expect("room");
    }
    writer.finish().expect("room");

    let stop = AtomicBool::new(false);
    let mut nic = open_card(Config::default());
    let mut reader = FrameReader::open(&path).expect("a capture");
    let report = replay(&mut nic, &mut reader, &stop).expect("an open card");
    assert_eq!(report.frames, 1300);
    assert!(nic.transport().sent == frames);

    for frame in frames.iter().take(70) {
        nic.transport().deliver(frame);
    }
    let limits = Limits {
        frames: Some(70),
        time: None,
    };
    let mut writer = FrameWriter::new(Vec::new(), "memory".into()).expect("room");
    record(&mut nic, &mut writer, limits, &stop).expect("an open card");
    assert_eq!(writer.frames(), 70);
}
