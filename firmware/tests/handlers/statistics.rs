//! Tests the statistics block, word for word.

use crate::machine::{MAC, Machine, PEER, Setup, frame, is_parallel};
use host_interface::LinkWord;
use host_interface::bd::{BdFlags, SendBd};
use host_interface::command::{Command, CommandCode, DISABLE, ENABLE};
use host_interface::event::EventCode;
use host_interface::extension::{Extension, HANDLER_COUNT};
use host_interface::gencom::{Gencom, mac_words};
use host_interface::statistics::{Counter64, FIELDS, Statistics};
use tigon2_chip::mac::MacStatistic;
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::testing::HOST_BASE;

const GROUP: [u8; 6] = [0x01, 0x00, 0x5E, 0x00, 0x00, 0x05];
const BROADCAST: [u8; 6] = [0xFF; 6];
const STRANGER: [u8; 6] = [0x00, 0x60, 0xCF, 0x99, 0x99, 0x99];

fn plain(code: CommandCode) -> u32 {
    Command::new(code, 0).pack()
}

fn switched(code: CommandCode, how: u16) -> u32 {
    Command::new(code, how).pack()
}

/// The block in the general information block.
fn updated(machine: &mut Machine) -> Statistics {
    machine.command(&[plain(CommandCode::UpdateStatistics)]);
    machine.pass(20);
    Statistics::from_words(std::array::from_fn(|word| machine.statistics(word as u64)))
}

fn refreshed(machine: &mut Machine) -> Statistics {
    machine.command(&[plain(CommandCode::RefreshStatistics)]);
    machine.pass(20);
    Statistics::from_words(std::array::from_fn(|word| machine.refreshed(word as u64)))
}

fn send(machine: &mut Machine, destination: [u8; 6], length: usize) {
    machine.put_frame(&[&frame(destination, MAC, length, 1)]);
    machine.send();
    machine.pass(200);
    machine.acknowledge();
}

fn receive(machine: &mut Machine, destination: [u8; 6], length: usize) {
    machine.arrive(&frame(destination, PEER, length, 1));
    machine.pass(200);
    machine.received();
}

fn compare(found: &Statistics, expected: &Statistics) {
    for field in FIELDS {
        let words = field.word..field.word + field.words;
        assert_eq!(
            found.words()[words.clone()],
            expected.words()[words],
            "{}, word {}",
            field.name,
            field.word
        );
    }
}

/// Every word of the block after traffic, commands and errors that are known one by one.
#[test]
fn every_counter_counts_what_happened() {
    let setup = Setup {
        link: LinkWord::from_bits(0x70AF_0000),
        ..Setup::default()
    };
    let mut machine = Machine::up(&setup);
    machine.set_bar(Gencom::InterfaceIndex.bar_offset(), 7);
    machine.command(&[plain(CommandCode::ClearStatistics)]);
    machine.pass(2000);
    machine.interrupts = 0;

    // Out: two unicast, one multicast, one broadcast; one BD of nothing.
    send(&mut machine, PEER, 100);
    send(&mut machine, PEER, 1000);
    send(&mut machine, GROUP, 60);
    send(&mut machine, BROADCAST, 70);
    let end = BdFlags::new().with_end(true);
    machine.put_send_bd(SendBd::new(HOST_BASE + 0x3_0000, 0, end, 0));
    machine.send();
    machine.pass(200);
    machine.acknowledge();
    // In: unicast, broadcast, multicast once subscribed; a stranger's and another group's
    // frame are the MAC's to drop, one that is too long is the firmware's.
    receive(&mut machine, MAC, 300);
    receive(&mut machine, MAC, 1514);
    receive(&mut machine, BROADCAST, 60);
    receive(&mut machine, GROUP, 60);
    let (high, low) = mac_words(GROUP);
    let extended = CommandCode::AddMulticastExtended;
    machine.command(&[plain(extended), high, low]);
    receive(&mut machine, GROUP, 80);
    receive(&mut machine, STRANGER, 60);
    receive(&mut machine, MAC, 1515);
    // Commands, each with what it counts.
    for word in [
        switched(CommandCode::Promiscuous, ENABLE),
        switched(CommandCode::AllMulticast, ENABLE),
        switched(CommandCode::AllMulticast, DISABLE),
        plain(CommandCode::FdrFiltering),
        plain(CommandCode::SetPartialReceiveCount),
        plain(CommandCode::SetMacAddress),
        plain(CommandCode::ClearProfile),
        plain(CommandCode::ResetJumboRing),
        0xEE00_0000,
        switched(CommandCode::HostState, 1),
    ] {
        machine.command(&[word]);
        machine.pass(20);
        machine.acknowledge();
    }
    let delete = plain(CommandCode::DeleteMulticastExtended);
    machine.command(&[delete, high, low]);
    machine.pass(20);
    machine.acknowledge();
    // The obsolete command: nothing new is produced.
    let obsolete = Command {
        index: machine.standard_producer() as u16,
        ..Command::new(CommandCode::SetStandardProducer, 0)
    };
    machine.command(&[obsolete.pack()]);
    // An interrupt that the host holds back, and that is made up for.
    machine.ring(Mailbox::HostInterrupt, 1);
    machine.settle();
    send(&mut machine, PEER, 64);
    machine.acknowledge();
    // The MAC's own counters, which the model's MAC does not all have a reason to count.
    for (address, value) in [
        (MacStatistic::ExcessCollisions.nic_address(), 101),
        (MacStatistic::LateCollisions.nic_address(), 102),
        (MacStatistic::Deferrals.nic_address(), 103),
        (MacStatistic::CrcErrors.nic_address(), 104),
        (MacStatistic::Underruns.nic_address(), 105),
        (MacStatistic::CarrierSenseErrors.nic_address(), 106),
        (MacStatistic::DroppedFlowControl.nic_address(), 107),
        (MacStatistic::DroppedNoSpace.nic_address(), 108),
        (MacStatistic::Collisions.nic_address(), 109),
    ] {
        machine.bench().set_word(address, value);
    }
    for collisions in 1..=15 {
        let address = MacStatistic::collision(collisions).expect("1 to 15");
        machine.bench().set_word(address, collisions);
    }
    machine.pass(2000);
    let mut found = updated(&mut machine);

    let (physical_high, physical_low) = mac_words(MAC);
    let text = if is_parallel() {
        *b"tigon-rs parallel, Tigon II\0\0\0\0\0"
    } else {
        *b"tigon-rs uniprocessor, Tigon II\0"
    };
    let expected = Statistics {
        fcs_errors: 104,
        single_collision_frames: 1,
        multiple_collision_frames: (2..=15).sum(),
        deferred_transmissions: 103,
        late_collisions: 102,
        excessive_collisions: 101,
        internal_transmit_errors: 105,
        carrier_sense_errors: 106,
        frames_too_long: 1,
        if_index: 7,
        if_type: 6,
        if_mtu: 1514,
        if_speed: 1_000_000_000,
        if_admin_status: 1,
        if_operational_status: 1,
        if_last_change: found.if_last_change,
        in_discards: 1,
        out_errors: 1,
        physical_address: [physical_high, physical_low],
        description: std::array::from_fn(|word| {
            u32::from_be_bytes(text[4 * word..4 * word + 4].try_into().expect("four"))
        }),
        in_octets: Counter64::new(300 + 1514 + 60 + 80),
        in_unicast: Counter64::new(2),
        in_multicast: Counter64::new(1),
        in_broadcast: Counter64::new(1),
        out_octets: Counter64::new(100 + 1000 + 60 + 70 + 64),
        out_unicast: Counter64::new(3),
        out_multicast: Counter64::new(1),
        out_broadcast: Counter64::new(1),
        link_trap_enable: 2,
        high_speed: 1000,
        promiscuous: 1,
        connector_present: 1,
        command_host_state: 1,
        command_fdr_filtering: 1,
        command_set_standard_producer: 1,
        command_update_statistics: 1,
        command_reset_jumbo_ring: 1,
        command_add_multicast: 1,
        command_delete_multicast: 1,
        command_promiscuous: 1,
        command_set_mac_address: 1,
        command_clear_profile: 1,
        command_all_multicast: 2,
        command_clear_statistics: 1,
        command_unknown: 1,
        event_statistics_updated: 1,
        // The BD of nothing; FDR, partial count, the unknown one.
        event_error: 4,
        event_multicast_updated: 2,
        event_jumbo_ring_reset: 1,
        send_producer_updates: 6,
        send_consumer_updates: 6,
        return_producer_updates: 4,
        // Four sends, three receives, seven events, and the one that is made up for.
        interrupts: 4 + 3 + 7 + 1,
        // The index behind the error of the BD of nothing, the frame behind the multicast
        // event, and the one that is held back: an interrupt is pending, or not allowed.
        avoided_interrupts: 3,
        send_bds: 0,
        receive_bds: 60,
        total_receive_bds: 60,
        mac_dropped_unicast: 1,
        mac_dropped_multicast: 1,
        mac_flow_control: 107,
        mac_dropped_no_space: 108,
        mac_collisions: 109,
        collision_histogram: std::array::from_fn(|bin| bin as u32 + 1),
        ..Statistics::ZERO
    };
    assert!((1..=20).contains(&found.if_last_change), "hundredths");
    found.profile = [0; 32];
    compare(&found, &expected);
    assert_eq!(machine.interrupts, found.interrupts + 1, "the update's own");
}

/// The profile: how often each handler ran since the command to clear it.
#[test]
fn the_profile_counts_handlers_since_it_was_cleared() {
    let mut machine = Machine::up(&Setup::default());
    machine.pass(5000);
    let counts = machine.extension(Extension::HandlerCounts);
    machine.command(&[plain(CommandCode::ClearProfile)]);
    machine.pass(2000);
    let before: Vec<_> = (0..HANDLER_COUNT as u32)
        .map(|n| machine.bench().word(counts + 4 * n))
        .collect();
    let first = refreshed(&mut machine);
    send(&mut machine, PEER, 100);
    machine.pass(3000);
    let second = refreshed(&mut machine);
    for (handler, before) in before.into_iter().enumerate() {
        let now = machine.bench().word(counts + 4 * handler as u32);
        let grown = second.profile[handler].wrapping_sub(first.profile[handler]);
        let ran = now.wrapping_sub(before);
        assert!(ran.abs_diff(grown) <= 2, "{handler}: {ran} and {grown}");
        assert!(first.profile[handler] < 50, "{handler}");
    }
    assert!(
        second.profile[HANDLER_COUNT..]
            .iter()
            .all(|word| *word == 0)
    );
    machine.command(&[plain(CommandCode::ClearProfile)]);
    let cleared = refreshed(&mut machine);
    assert!(cleared.profile.iter().all(|count| *count < 10));
}

/// Command 0F: everything that counts is 0, what describes stays.
#[test]
fn clearing_leaves_what_is_not_counted() {
    let mut machine = Machine::up(&Setup::default());
    receive(&mut machine, MAC, 300);
    send(&mut machine, PEER, 300);
    receive(&mut machine, STRANGER, 300);
    let before = refreshed(&mut machine);
    assert_ne!(before.in_octets, Counter64::new(0));
    assert_ne!(before.mac_dropped_unicast, 0);
    machine.command(&[plain(CommandCode::ClearStatistics)]);
    let mut found = refreshed(&mut machine);
    found.profile = [0; 32];
    let expected = Statistics {
        if_type: 6,
        if_mtu: 1514,
        if_speed: 1_000_000_000,
        high_speed: 1000,
        if_admin_status: 1,
        if_operational_status: 1,
        if_last_change: before.if_last_change,
        physical_address: before.physical_address,
        description: before.description,
        link_trap_enable: 2,
        promiscuous: 2,
        connector_present: 1,
        command_clear_statistics: 1,
        command_refresh_statistics: 1,
        receive_bds: 63,
        total_receive_bds: 63,
        ..Statistics::ZERO
    };
    compare(&found, &expected);
}

/// Gencom word 638: the block and its event every so many microseconds; drivers change it.
#[test]
fn statistics_come_at_intervals() {
    let mut machine = Machine::up(&Setup {
        statistics_ticks: 10_000,
        ..Setup::default()
    });
    let count = |machine: &mut Machine, microseconds: u64| {
        machine.events();
        machine.pass(microseconds);
        let events = machine.events();
        assert!(
            events
                .iter()
                .all(|e| e.event == EventCode::StatisticsUpdated)
        );
        events.len()
    };
    machine.pass(20_000);
    assert!((9..=11).contains(&count(&mut machine, 100_000)));
    let ticks = Gencom::StatisticsTicks.bar_offset();
    machine.set_bar(ticks, 0);
    machine.pass(2000);
    assert_eq!(count(&mut machine, 100_000), 0);
    machine.set_bar(ticks, 25_000);
    assert!((3..=4).contains(&count(&mut machine, 102_000)));
    machine.set_bar(ticks, u32::MAX);
    machine.pass(30_000);
    assert_eq!(count(&mut machine, 100_000), 0);
    machine.set_bar(ticks, 1);
    machine.pass(2000);
    assert!(count(&mut machine, 50_000) >= 40, "each millisecond");
}

/// With the event ring full events wait, and are counted as delayed once.
#[test]
fn events_that_wait_are_counted_once() {
    let mut machine = Machine::up(&Setup::default());
    machine.command(&[plain(CommandCode::ClearStatistics)]);
    // The host says that it has read up to one behind the producer: a full ring.
    let full = Gencom::EventConsumer.bar_offset();
    let consumer = machine.event_consumer();
    machine.set_bar(full, (consumer + 1) % 256);
    for _ in 0..10 {
        machine.command(&[plain(CommandCode::FdrFiltering)]);
    }
    machine.pass(20_000);
    let found = refreshed(&mut machine);
    assert_eq!(found.events_delayed, 8);
    assert_eq!(found.event_ring_full, 10, "two of them are lost");
    assert_eq!(found.event_error, 10);
    machine.set_bar(full, consumer);
    machine.pass(3000);
    assert_eq!(machine.events().len(), 8);
}
