//! Tests commands, and settings that must survive a reset.

mod support;

use std::time::Duration;

use host_driver::nic::{Coalescing, LinkSettings, MulticastForm, Negotiate};
use host_driver::{Config, Nic, NicError};
use host_interface::event::{Event, EventCode, LINK_DOWN};
use host_interface::gencom::Gencom;
use host_interface::statistics::WORDS;
use support::{ScriptedCard, open_card, quick};

const GROUP: [u8; 6] = [0x01, 0, 0x5E, 0, 0, 0xFB];
const OTHER: [u8; 6] = [0x01, 0, 0x5E, 0, 0, 0xFC];

fn word(nic: &mut Nic<ScriptedCard>, word: Gencom) -> u32 {
    nic.transport().bench.word(word.nic_address())
}

fn commands_since(nic: &mut Nic<ScriptedCard>, before: usize) -> Vec<u32> {
    nic.transport().commands.split_off(before)
}

/// Host/NIC software interface, "Commands".
#[test]
fn every_call_gives_its_command() {
    let mut nic = open_card(quick());
    let before = nic.transport().commands.len();
    nic.set_promiscuous(true).expect("a firmware");
    nic.set_promiscuous(false).expect("a firmware");
    nic.set_all_multicast(true).expect("a firmware");
    nic.add_multicast(GROUP).expect("a firmware");
    nic.delete_multicast(GROUP).expect("a firmware");
    nic.set_station([2, 0, 0, 0, 0, 9]).expect("a firmware");
    nic.clear_statistics().expect("a firmware");
    nic.clear_profile().expect("a firmware");
    nic.refresh_statistics().expect("a firmware");
    nic.update_statistics().expect("a firmware");
    nic.set_link(LinkSettings::default(), Negotiate::Gigabit)
        .expect("a firmware");
    assert_eq!(
        commands_since(&mut nic, before),
        [
            0x0A00_1000,
            0x0A00_2000,
            0x0E00_1000,
            0x1200_0000,
            0x1300_0000,
            0x0C00_0000,
            0x0F00_0000,
            0x0D00_0000,
            0x1100_0000,
            0x0400_0000,
            0x0B00_1000,
        ]
    );
    assert_eq!(word(&mut nic, Gencom::MacAddressLow), 9);
    assert_eq!(nic.station(), [2, 0, 0, 0, 0, 9]);
}

#[test]
fn the_older_multicast_form_has_its_address_in_gencom() {
    let mut nic = open_card(Config {
        multicast: MulticastForm::Gencom,
        ..quick()
    });
    let before = nic.transport().commands.len();
    nic.add_multicast(GROUP).expect("a firmware");
    assert_eq!(word(&mut nic, Gencom::MulticastHigh), 0x0100);
    assert_eq!(word(&mut nic, Gencom::MulticastLow), 0x5E00_00FB);
    nic.delete_multicast(GROUP).expect("a firmware");
    assert_eq!(commands_since(&mut nic, before), [0x0800_0000, 0x0900_0000]);
}

#[test]
fn a_reset_card_is_told_everything_again() {
    let mut nic = open_card(quick());
    nic.set_promiscuous(true).expect("a firmware");
    nic.set_all_multicast(true).expect("a firmware");
    nic.add_multicast(GROUP).expect("a firmware");
    nic.add_multicast(OTHER).expect("a firmware");
    nic.add_multicast(GROUP).expect("twice does no harm");
    nic.set_station([2, 0, 0, 0, 0, 9]).expect("a firmware");
    nic.set_mtu(1400).expect("a firmware");
    let calm = Coalescing {
        receive_ticks: 7,
        ..Coalescing::default()
    };
    nic.set_coalescing(calm).expect("a card");
    assert_eq!(word(&mut nic, Gencom::ReceiveTicks), 7);
    let before = nic.transport().commands.len();
    nic.recover().expect("the same firmware");
    let again = commands_since(&mut nic, before);
    assert_eq!(again[0], 0x0F00_0000);
    assert_eq!(
        again[1..],
        [
            0x0100_1000,
            0x0A00_1000,
            0x0E00_1000,
            0x1200_0000,
            0x1200_0000
        ]
    );
    assert_eq!(nic.multicast(), [GROUP, OTHER]);
    assert_eq!(word(&mut nic, Gencom::MacAddressLow), 9);
    assert_eq!(word(&mut nic, Gencom::InterfaceMtu), 1418);
    assert_eq!(word(&mut nic, Gencom::ReceiveTicks), 7);
}

#[test]
fn changes_of_the_link_are_counted_and_waited_for() {
    let mut nic = open_card(quick());
    assert_eq!(nic.link_changes(), 1);
    let soon = Duration::from_millis(30);
    assert!(!nic.wait_link_changes(2, soon).expect("a card"));
    nic.transport()
        .event(Event::new(EventCode::LinkState, LINK_DOWN));
    assert!(nic.wait_link_changes(2, soon).expect("a card"));
    nic.transport()
        .bench
        .set_word(Gencom::FastLinkState.nic_address(), 0x800A_0000);
    let up = nic.link_state().expect("a card").up().expect("one is up");
    assert!(up.full_duplex() && up.speed_100());
}

#[test]
fn every_word_of_the_statistics_has_a_name() {
    let mut nic = open_card(quick());
    let fields = host_driver::nic::every_field(&nic.card_statistics().expect("there"));
    let pairs = fields.iter().filter(|(name, _)| {
        // 64-bit counters are one number of two words.
        host_interface::statistics::FIELDS
            .iter()
            .any(|field| field.name == name && field.words == 2)
    });
    assert_eq!(fields.len() + pairs.count(), WORDS);
    let mac = nic.mac_statistics().expect("a card");
    assert_eq!(mac.len(), 29, "32 words, 3 of them without a meaning");
    assert_eq!(mac[1].0, "Collisions1");
}

/// Reference 12: entries of 32 bytes, written downwards (C).
#[test]
fn the_trace_is_read_from_its_oldest_entry_on() {
    let mut nic = open_card(quick());
    assert_eq!(nic.trace().expect("no ring").len(), 0);
    let start = 0x6_0000;
    let set = |nic: &mut Nic<ScriptedCard>, word: Gencom, value| {
        nic.transport().bench.set_word(word.nic_address(), value);
    };
    set(&mut nic, Gencom::TraceStart, start);
    set(&mut nic, Gencom::TraceLength, 4 * 32);
    let mut next = 3;
    for number in 1..=6u32 {
        let entry = start + 32 * next;
        nic.transport().bench.set_word(entry, 0x5452_4143);
        nic.transport().bench.set_word(entry + 8, number);
        next = if next == 0 { 3 } else { next - 1 };
        set(&mut nic, Gencom::TracePointer, start + 32 * next);
        let codes: Vec<u32> = nic
            .trace()
            .expect("a ring")
            .iter()
            .map(|e| e.code)
            .collect();
        let oldest = number.saturating_sub(3).max(1);
        assert_eq!(codes, (oldest..=number).collect::<Vec<_>>());
    }
    for (pointer, length, start) in [
        (start + 1, 128, start),
        (start + 160, 128, start),
        (start - 32, 128, start),
        (start, 100, start),
        (start, !31, start),
        (!3, 128, !3),
    ] {
        set(&mut nic, Gencom::TracePointer, pointer);
        set(&mut nic, Gencom::TraceLength, length);
        set(&mut nic, Gencom::TraceStart, start);
        let error = nic.trace().expect_err("nonsense");
        assert!(matches!(error, NicError::BadIndex { .. }), "{error}");
    }
}
