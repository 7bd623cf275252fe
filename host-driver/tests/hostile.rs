//! Tests the driver with firmware that sends wrong data, dies or hangs: errors and counts, never a
//! panic, never an access outside its memory.

mod support;

use std::io::IoSlice;
use std::time::{Duration, Instant};

use host_driver::nic::{DropReason, SLOT_BYTES};
use host_driver::{Config, Nic, NicError};
use host_interface::bd::{BdFlags, ReceiveBd};
use host_interface::command::CommandCode;
use support::{COUNTS, Faults, ScriptedCard, firmware_file, frame, open_card, quick};

fn card_with(faults: Faults) -> Nic<ScriptedCard> {
    let mut card = ScriptedCard::default();
    card.faults = faults;
    Nic::probe(card, quick()).expect("a card")
}

fn load_error(faults: Faults) -> NicError {
    let mut nic = card_with(faults);
    let error = nic.load(&firmware_file()).expect_err("it cannot come up");
    assert!(
        nic.transport()
            .bench
            .card
            .inspect()
            .halted(tigon2_chip::Cpu::A),
        "a firmware that failed is halted"
    );
    error
}

fn send_one(nic: &mut Nic<ScriptedCard>) {
    let queued = nic
        .queue(&[IoSlice::new(&frame(1, 60))])
        .expect("an open card");
    assert!(queued);
    nic.submit().expect("a card");
}

#[test]
fn silent_firmware_is_given_up_with_what_the_registers_say() {
    let start = Instant::now();
    let error = load_error(Faults {
        silent: true,
        ..Faults::default()
    });
    assert!(matches!(error, NicError::FirmwareSilent { .. }), "{error}");
    assert!(error.to_string().contains("CPU A runs"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// Every wait that ends without what was waited for: one account of the card for all of them.
#[test]
fn whoever_gives_up_says_what_the_emulator_has_counted() {
    let faults = || Faults {
        no_link: true,
        ..Faults::default()
    };
    let silent = load_error(Faults {
        silent: true,
        ..Faults::default()
    });
    let mut nic = card_with(faults());
    nic.load(&firmware_file()).expect("it comes up");
    nic.open().expect("a firmware that listens");
    let link = nic
        .wait_link(Duration::from_millis(10))
        .expect_err("no link");
    nic.transport().faults.deaf = true;
    let command = nic.set_promiscuous(true).expect_err("nobody listens");
    nic.transport().faults.keeps_bds = true;
    send_one(&mut nic);
    let drained = nic.drain(Duration::from_millis(10));
    let drained = drained.expect_err("nothing leaves");
    for error in [silent, link, command, drained] {
        let text = error.to_string();
        assert_eq!(text.matches(COUNTS).count(), 1, "{text}");
        assert!(text.contains("CPU A runs at"), "{text}");
    }
}

#[test]
fn firmware_that_dies_at_start_is_quoted() {
    let start = Instant::now();
    let error = load_error(Faults {
        fatal_at_start: Some((5, 0x450, 0x4123)),
        ..Faults::default()
    });
    let text = error.to_string();
    assert!(matches!(error, NicError::FirmwareFatal(_)), "{text}");
    assert!(
        text.contains("Configuration") && text.contains("0x450"),
        "{text}"
    );
    assert!(text.contains("CPU B near 0x4122"), "{text}");
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "it need not wait for the timeout"
    );
}

#[test]
fn firmware_that_refuses_its_configuration_is_quoted() {
    let error = load_error(Faults {
        error_at_start: Some(3),
        ..Faults::default()
    });
    assert!(error.to_string().contains("bad configuration"), "{error}");
}

#[test]
fn firmware_that_takes_no_commands_times_out() {
    let mut nic = card_with(Faults {
        deaf: true,
        ..Faults::default()
    });
    nic.load(&firmware_file()).expect("it comes up");
    let error = nic.open().expect_err("nobody listens");
    assert!(
        matches!(
            error,
            NicError::CommandTimeout {
                command: "clear statistics",
                ..
            }
        ),
        "{error}"
    );
    assert!(error.is_recoverable());
}

#[test]
fn a_command_without_its_event_times_out() {
    let mut nic = open_card(quick());
    nic.transport().faults.no_events = true;
    assert!(matches!(
        nic.statistics(),
        Err(NicError::CommandTimeout {
            command: "update statistics",
            ..
        })
    ));
}

#[test]
fn a_refused_command_is_named() {
    let mut nic = open_card(quick());
    nic.transport().faults.refuse = Some((CommandCode::Promiscuous, 2));
    let error = nic.set_promiscuous(true).expect_err("it is refused");
    let text = error.to_string();
    assert!(
        text.contains("not implemented") && text.contains("0x0a"),
        "{text}"
    );
}

/// The firmware judges rings while it uses them, so such an event may come at any time.
#[test]
fn a_bad_ring_found_during_a_command_is_not_taken_for_its_answer() {
    let mut nic = open_card(quick());
    nic.transport().faults.finds_bad_ring = Some(CommandCode::UpdateStatistics);
    let statistics = nic.statistics().expect("the command is carried out");
    assert_eq!(statistics.firmware_errors, 1);
    // Where no answer comes at all, it is the best reason there is.
    nic.transport().faults.no_events = true;
    let text = nic.statistics().expect_err("no answer").to_string();
    assert!(text.contains("bad configuration"), "{text}");
}

#[test]
fn a_command_consumer_outside_the_ring_is_refused() {
    let mut nic = open_card(quick());
    nic.transport().faults.command_consumer = Some(64);
    let error = nic.set_promiscuous(true).expect_err("a bad index");
    assert!(
        matches!(error, NicError::BadIndex { value: 64, .. }),
        "{error}"
    );
}

#[test]
fn producers_outside_their_rings_are_refused() {
    for wrong in [256, 0x8000_0000, u32::MAX] {
        let mut nic = open_card(quick());
        nic.transport().faults.event_producer = Some(wrong);
        let link = host_interface::event::EventCode::LinkState;
        let event = host_interface::event::Event::new(link, 1);
        nic.transport().event(event);
        let error = nic.service().expect_err("a bad index");
        assert!(
            matches!(error, NicError::BadIndex { value, .. } if value == wrong),
            "{error}"
        );
    }
    for wrong in [2048, u32::MAX] {
        let mut nic = open_card(quick());
        nic.transport().faults.return_producer = Some(wrong);
        nic.transport().deliver(&frame(1, 60));
        let error = nic.receive_batch(64).expect_err("a bad index");
        assert!(
            matches!(error, NicError::BadIndex { value, .. } if value == wrong),
            "{error}"
        );
    }
}

#[test]
fn a_send_consumer_that_passes_the_producer_is_refused() {
    for wrong in [2, 511, 512, u32::MAX] {
        let mut nic = open_card(quick());
        nic.transport().faults.send_consumer = Some(wrong);
        send_one(&mut nic);
        let error = nic.service().expect_err("a bad index");
        assert!(
            matches!(error, NicError::BadIndex { value, .. } if value == wrong),
            "{error}"
        );
    }
}

#[test]
fn a_send_consumer_that_goes_back_is_refused() {
    let mut nic = open_card(quick());
    for _ in 0..5 {
        send_one(&mut nic);
        nic.service().expect("good indices");
    }
    nic.transport().faults.send_consumer = Some(3);
    send_one(&mut nic);
    assert!(matches!(
        nic.service(),
        Err(NicError::BadIndex { value: 3, .. })
    ));
}

#[test]
fn return_bds_that_fit_no_buffer_are_dropped_by_reason() {
    type Change = fn(ReceiveBd) -> ReceiveBd;
    let cases: [(Change, DropReason); 6] = [
        (
            |mut bd| {
                bd.index_and_length |= 0xFFFF_0000;
                bd
            },
            DropReason::BadIndex,
        ),
        (
            |mut bd| {
                bd.opaque ^= 1;
                bd
            },
            DropReason::BadMark,
        ),
        (
            |bd| bd.with_length(SLOT_BYTES as u16 + 1),
            DropReason::TooLong,
        ),
        (|bd| bd.with_length(u16::MAX), DropReason::TooLong),
        (|bd| bd.with_length(13), DropReason::TooShort),
        (
            |bd| bd.with_flags(BdFlags::new().with_error(true)),
            DropReason::FrameError,
        ),
    ];
    for (change, reason) in cases {
        let mut nic = open_card(quick());
        nic.transport().faults.return_bd = Some(change);
        nic.transport().deliver(&frame(1, 60));
        assert_eq!(
            nic.receive_batch(64).expect("it is counted"),
            Vec::<Vec<u8>>::new()
        );
        assert_eq!(nic.drops().get(reason), 1, "{}", reason.name());
        assert_eq!(nic.drops().total(), 1);
        // And the next good frame comes through.
        nic.transport().faults.return_bd = None;
        nic.transport().deliver(&frame(2, 99));
        assert_eq!(nic.receive_batch(64).expect("a good BD"), [frame(2, 99)]);
    }
}

#[test]
fn the_same_buffer_handed_back_twice_is_noticed() {
    let mut nic = open_card(quick());
    nic.transport().deliver(&frame(1, 60));
    nic.transport().repeat_last();
    nic.transport().deliver(&frame(2, 61));
    let frames = nic.receive_batch(8).expect("two good BDs");
    assert_eq!(frames, [frame(1, 60), frame(2, 61)]);
    assert_eq!(nic.drops().get(DropReason::Stale), 1);
    // A buffer that does not exist at all.
    let bd = ReceiveBd::new(0, 60, BdFlags::new(), 400, 0x5453_0000 | 400);
    nic.transport().hand_back(bd);
    assert_eq!(
        nic.receive_batch(8).expect("it is counted"),
        Vec::<Vec<u8>>::new()
    );
    assert_eq!(nic.drops().get(DropReason::BadIndex), 1);
}

#[test]
fn endless_nonsense_ends_with_an_error() {
    let mut nic = open_card(quick());
    nic.transport().faults.return_bd = Some(|mut bd| {
        bd.opaque = 0;
        bd
    });
    let buffers = u32::from(nic.config().receive_buffers);
    let bd = ReceiveBd::default();
    let mut result = Ok(Vec::new());
    for _ in 0..=buffers {
        nic.transport().hand_back(bd);
        result = nic.receive_batch(64);
    }
    let error = result.expect_err("no buffer is left");
    assert!(matches!(error, NicError::Nonsense { .. }), "{error}");
    assert!(error.is_recoverable());
}

#[test]
fn an_interrupt_storm_is_bounded_work() {
    let mut nic = open_card(quick());
    nic.transport().faults.storm = true;
    for _ in 0..1000 {
        assert!(nic.wait(Duration::from_millis(1)).expect("a card"));
        nic.service().expect("good indices");
        assert_eq!(
            nic.receive_batch(64).expect("nothing there"),
            Vec::<Vec<u8>>::new()
        );
    }
    nic.transport().deliver(&frame(1, 60));
    assert_eq!(nic.receive_batch(64).expect("a good BD").len(), 1);
}

#[test]
fn sent_bds_that_never_come_back_are_noticed_and_recovered_from() {
    let mut nic = open_card(quick());
    nic.set_promiscuous(true).expect("a firmware that listens");
    nic.transport().faults.keeps_bds = true;
    send_one(&mut nic);
    nic.service().expect("not late yet");
    std::thread::sleep(Duration::from_millis(60));
    let error = nic.service().expect_err("too late");
    assert!(matches!(error, NicError::Stuck { .. }), "{error}");
    assert!(error.is_recoverable());

    nic.transport().faults.keeps_bds = false;
    nic.transport().commands.clear();
    nic.recover().expect("the same firmware again");
    assert_eq!(nic.drops().get(DropReason::LostInReset), 1);
    assert!(
        nic.transport().commands.contains(&0x0A00_1000),
        "the mode is set again"
    );
    nic.wait_link(Duration::from_secs(1)).expect("a link");
    send_one(&mut nic);
    nic.service().expect("good indices");
    assert_eq!(nic.send_outstanding(), 0);
    nic.transport().deliver(&frame(7, 70));
    assert_eq!(nic.receive_batch(8).expect("a good BD"), [frame(7, 70)]);
    assert_eq!(nic.counters().recoveries, 1);
}

#[test]
fn a_card_without_a_link_is_not_stuck() {
    let mut nic = card_with(Faults {
        no_link: true,
        keeps_bds: true,
        ..Faults::default()
    });
    nic.load(&firmware_file()).expect("it comes up");
    nic.open().expect("a firmware that listens");
    let error = nic
        .wait_link(Duration::from_millis(30))
        .expect_err("no link");
    assert!(matches!(error, NicError::NoLink { .. }), "{error}");
    send_one(&mut nic);
    std::thread::sleep(Duration::from_millis(60));
    nic.service().expect("it waits for the link");
}

#[test]
fn firmware_that_dies_at_work_is_quoted_instead_of_stuck() {
    let mut nic = open_card(quick());
    nic.transport().faults.fatal_at_send = Some((3, 0x0100_0000, 0x5550));
    send_one(&mut nic);
    std::thread::sleep(Duration::from_millis(60));
    let error = nic.service().expect_err("it is dead");
    assert!(error.to_string().contains("DmaRead"), "{error}");
    assert!(matches!(nic.look_alive(), Err(NicError::FirmwareFatal(_))));
}

#[test]
fn frames_that_cannot_be_sent_are_refused() {
    let mut nic = open_card(Config::default());
    let long = vec![0; 1519];
    let many = vec![IoSlice::new(&long[..20]); 19];
    for (fragments, what) in [
        (vec![IoSlice::new(&long)], "too long"),
        (vec![IoSlice::new(&long[..13])], "too short"),
        (vec![], "empty"),
        (many, "too many fragments"),
    ] {
        let error = nic.queue(&fragments).expect_err(what);
        assert!(
            matches!(error, NicError::BadFrame { .. }),
            "{what}: {error}"
        );
    }
    assert!(matches!(
        nic.queue_with(|_, _, _| Ok(1519)),
        Err(NicError::BadFrame { .. })
    ));
    assert_eq!(nic.send_outstanding(), 0);
}

#[test]
fn something_else_is_not_touched() {
    use host_driver::transport::{Transport, TransportError, Vector};

    /// A PCI function of another vendor, which must not be written to.
    struct Stranger;
    impl Transport for Stranger {
        fn read(&mut self, _: u32) -> Result<u32, TransportError> {
            panic!("a stranger's registers are its own")
        }
        fn write(&mut self, _: u32, _: u32) -> Result<(), TransportError> {
            panic!("a stranger's registers are its own")
        }
        fn config_read(&mut self, _: u32) -> Result<u32, TransportError> {
            Ok(0x100E_8086)
        }
        fn config_write(&mut self, _: u32, _: u32) -> Result<(), TransportError> {
            panic!("a stranger's configuration is its own")
        }
        fn allocate(&mut self, _: usize) -> Result<host_driver::DmaMemory, TransportError> {
            panic!("a stranger gets no memory")
        }
        fn wait(&mut self, _: Vector, _: Duration) -> Result<bool, TransportError> {
            panic!("a stranger does not interrupt")
        }
        fn unmask(&mut self, _: Vector) -> Result<(), TransportError> {
            panic!("a stranger does not interrupt")
        }
        fn reset(&mut self) -> Result<(), TransportError> {
            panic!("a stranger is not reset")
        }
    }
    let error = Nic::probe(Stranger, Config::default())
        .err()
        .expect("it is no card");
    assert!(error.to_string().contains("8086:100e"), "{error}");
}
