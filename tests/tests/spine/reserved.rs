//! Memory that the host reserves for extensions when it starts the card.

use crate::answers::{is_answer, ping};
use crate::card::{self, Spine, image, variant};
use host_driver::nic::NicError;
use host_driver::{Config, Nic};
use host_interface::spine::{DomainCount, HandlerCount};
use integration_tests::Engine;
use spine_linker::load::{Guard, LoadError};
use spine_linker::routes::{self, NextHop, Route};
use testbed::firmware::Variant;
use tigon_bench::spine::router;
use tigon2_model::Board;
use tigon2_sim::SimTransport;

/// EtherType of frames for a handler that never returns.
const OURS: u16 = 0x88B5;

fn with(kilobytes: u16) -> Config {
    Config {
        arena: kilobytes,
        ..Config::default()
    }
}

/// Two routers with their tables need more than the arena that there is anyway. With 64 KB more they
/// are loaded, and an extension behind them: its handler runs and may be cut off there, and frames
/// go through what the packet buffers have left.
#[test]
fn more_extensions_are_loaded_into_what_was_reserved() {
    let router = card::ours("router");
    let policy = card::policy_with_router();
    let mut plain = Spine::configured(Config::default());
    let mut large = Spine::configured(with(64));
    let free = plain.loader.free();
    assert_eq!(large.loader.free(), free + (64 << 10));
    plain.load_by(&router, &policy).expect("one fits");
    let second = plain.load_by(&router, &policy);
    assert!(matches!(second, Err(LoadError::Link(_))), "{second:?}");
    for _ in 0..2 {
        large.load_by(&router, &policy).expect("it fits");
    }
    let before = large.loader.free();
    let echo = large.load(&card::ours("echo"));
    let endless = large.load(&card::of_tests("infinite"));
    assert!(large.loader.free() < before);
    large.guards(&[
        Guard::ip_protocol(echo, 0, 1),
        Guard::ether_type(endless, 7, OURS),
    ]);
    for number in 0..300 {
        let question = ping(&large, number, &[number as u8; 1400]);
        large.stage.engine.send(&question);
        is_answer(&large.stage.wire(), &question);
        let frame = large.stage.inbound(number.into());
        large.stage.engine.send(&frame);
        assert_eq!(large.stage.receive(1), [frame]);
    }
    assert_eq!(large.count(endless, DomainCount::Suspended), 1);
    assert!(large.count(endless, HandlerCount::Overruns) >= 3);
}

/// 256 KB are the most; everything is there again when the last domain is gone.
#[test]
fn as_much_as_there_can_be_is_reserved() {
    let mut spine = Spine::configured(with(256));
    let free = spine.loader.free();
    assert!(free > 256 << 10, "{free}");
    let policy = card::policy_with_router();
    for _ in 0..2 {
        let router = card::ours("router");
        let domains = [(); 4].map(|()| spine.load_by(&router, &policy).expect("it fits"));
        for domain in domains {
            let unloaded = spine.loader.unload(&mut spine.card, domain);
            unloaded.expect("it is loaded");
        }
        assert_eq!(spine.loader.free(), free);
    }
}

/// 10 000 routes, whose table takes 131 KB: two of them fit into what is reserved. Packets go where a
/// search of all routes sends them, before the table is replaced and behind that.
#[test]
fn ten_thousand_routes_are_followed() {
    let mut spine = Spine::configured(with(256));
    let container = card::router_with(69_632);
    let domain = spine.load_by(&container, &card::policy_with_large_router());
    let domain = domain.unwrap_or_else(|error| panic!("{error}"));
    let ipv4 = Guard::ether_type(domain, 0, 0x0800);
    spine.guards(&[ipv4]);
    let station = spine.stage.nic.station();
    let mut number = 0;
    for version in 0..3 {
        let routes = router::routes(10_000, version).expect("routes");
        let table = routes::table(&routes).expect("a table");
        let Spine { card, loader, .. } = &mut spine;
        routes::replace(loader, card, domain, &table).unwrap_or_else(|error| panic!("{error}"));
        // Those to this host (RFC 1122) are not forwarded.
        let forwarded = |route: &&Route| route.prefix() >> 25 != 127 >> 1;
        for route in routes.iter().filter(forwarded).step_by(100) {
            // Inside of a route, and next to it.
            for address in [route.prefix(), route.prefix().wrapping_sub(1)] {
                number += 1;
                let packet = router::packet_to(station, address, 60, number);
                spine.stage.engine.send(&packet);
                match router::oracle(&routes, address) {
                    NextHop::Wire(hop) => {
                        let sent = spine.stage.wire();
                        assert_eq!(sent[..6], hop, "{address:#010x}");
                        assert_eq!(sent[30..34], address.to_be_bytes());
                    }
                    _ => assert_eq!(spine.stage.receive(1), [packet], "{address:#010x}"),
                }
            }
        }
    }
}

/// What cannot be reserved is refused: no multiple of 4 KB, more than 256, on a card with half of the
/// memory, or by firmware that loads no extensions.
#[test]
fn what_cannot_be_reserved_is_refused() {
    let half = {
        let mut board = Board::default();
        board.memory.sram_bytes = 0x8_0000;
        board
    };
    for (board, variant, kilobytes) in [
        (Board::default(), variant(), 66),
        (Board::default(), variant(), 260),
        (half, variant(), 64),
        (Board::default(), Variant::Parallel, 64),
    ] {
        let transport = SimTransport::power_on(board);
        let mut nic = Nic::probe(transport, with(kilobytes)).expect("a card");
        let refused = nic.load(&image(variant));
        assert!(
            matches!(refused, Err(NicError::BadSetting { .. })),
            "{kilobytes}: {refused:?}"
        );
    }
}
