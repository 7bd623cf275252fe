//! An endpoint in a VLAN: its frames have the tag, and it gets frames of that VLAN alone.

use crate::card::{Card, PORT, bytes, data};
use eudp::{Checksum, CutThrough, EndpointConfig, EudpError, Refusals};
use integration_tests::{Engine, Sim};

const VLAN: u16 = 5;

fn card(checksum: Checksum, mtu: u32) -> Card {
    let config = EndpointConfig {
        vlan: Some(VLAN),
        checksum,
        mtu,
        ..EndpointConfig::default()
    };
    Card::with_config(Sim::timed("default"), CutThrough::OfBus, config)
}

/// A frame with a tag of this VLAN, of priority 3.
fn tagged(frame: &[u8], vlan: u16) -> Vec<u8> {
    let tag = (0x8100_6000 | u32::from(vlan)).to_be_bytes();
    [&frame[..12], &tag, &frame[12..]].concat()
}

/// Whole datagrams, stored and cut through, and those in fragments leave with the tag.
#[test]
fn frames_leave_with_the_tag() {
    for (checksum, mtu) in [(Checksum::Full, 1500), (Checksum::None, 9000)] {
        let mut card = card(checksum, mtu);
        let most = mtu as usize - 28;
        for (number, length) in (0..).zip([1, 64, 700, most]) {
            let sent = bytes(number, length);
            card.send(0, &sent, number);
            let frame = card.wire().bytes;
            assert_eq!(frame[12..16], [0x81, 0, 0, VLAN as u8], "{length}");
            assert!(data(&frame) == sent, "{length}");
            card.completion();
        }
        card.send(0, &bytes(9, 20_000), 9);
        for _ in 0..20_008_usize.div_ceil((mtu as usize - 20) & !7) {
            let frame = card.wire().bytes;
            assert_eq!(frame[12..18], [0x81, 0, 0, VLAN as u8, 8, 0]);
        }
        card.completion();
        assert_eq!(card.cuts()[0] > 0, mtu == 9000);
        card.follow();
    }
}

/// Whole datagrams and fragments of the VLAN arrive, whatever their priority.
#[test]
fn frames_with_the_tag_arrive() {
    let mut card = card(Checksum::Full, 9000);
    for (number, length) in (0..).zip([0, 1, 64, 1472, 8972]) {
        let sent = bytes(number, length);
        card.post(0, 9000, number);
        let frame = tagged(&card.inbound(PORT, &sent), VLAN);
        card.stage.engine.send(&frame);
        assert_eq!(card.completion(), Card::received(number, length, true));
        assert!(card.memory(0, length) == sent, "{length} bytes");
    }
    let sent = bytes(9, 30_001);
    card.post(0, 30_001, 9);
    for fragment in card.fragments((3, PORT), &sent, 1480) {
        card.stage.engine.send(&tagged(&fragment, VLAN));
    }
    assert_eq!(card.completion(), Card::received(9, 30_001, true));
    assert!(card.memory(0, 30_001) == sent);
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// A frame without a tag, or of another VLAN, is the host's, be it to the endpoint's address and
/// port; so is a fragment of another VLAN that would fit a datagram of which some is there.
#[test]
fn other_frames_are_the_hosts() {
    let mut card = card(Checksum::Full, 1500);
    card.post(0, 9000, 1);
    let sent = bytes(1, 4000);
    let ours = card.fragments((7, PORT), &sent, 1480);
    card.stage.engine.send(&tagged(&ours[0], VLAN));
    card.stage.engine.send(&tagged(&ours[1], VLAN));
    let whole = card.inbound(PORT, &bytes(2, 500));
    let foreign = card.fragments((7, PORT), &bytes(3, 4000), 1480);
    let others = [
        whole.clone(),
        tagged(&whole, VLAN + 1),
        foreign[2].clone(),
        tagged(&foreign[2], VLAN + 1),
    ];
    for frame in &others {
        card.stage.engine.send(frame);
    }
    assert_eq!(card.stage.receive(4), others);
    assert!(card.rests());
    card.stage.engine.send(&tagged(&ours[2], VLAN));
    assert_eq!(card.completion(), Card::received(1, 4000, true));
    assert!(card.memory(0, 4000) == sent);
    assert_eq!(card.refusals(), Refusals::default());
}

/// The same port without a tag is another endpoint's; there is no VLAN 0 and no 4095.
#[test]
fn vlans_are_kept_apart() {
    let mut card = card(Checksum::Full, 1500);
    let config = *card.endpoint.config();
    let mut lent = host_driver::nic::EndpointCard(&mut card.stage.nic);
    for vlan in [0, 4095] {
        let config = EndpointConfig {
            vlan: Some(vlan),
            ..config
        };
        let refused = card.eudp.open(&mut lent, config);
        assert!(matches!(refused, Err(EudpError::Vlan(it)) if it == vlan));
    }
    let config = EndpointConfig {
        vlan: None,
        ..config
    };
    let mut plain = card.eudp.open(&mut lent, config).expect("another endpoint");
    let region = card.eudp.register(&mut lent, &mut plain, &card.memory);
    let piece = region.expect("room").segment(0, 1000);
    plain.post(&mut lent, &[piece], 2).expect("it is posted");
    card.post(1000, 1000, 1);
    let (with, without) = (bytes(4, 300), bytes(5, 400));
    let frame = card.inbound(PORT, &without);
    card.stage.engine.send(&frame);
    let frame = tagged(&card.inbound(PORT, &with), VLAN);
    card.stage.engine.send(&frame);
    assert_eq!(card.completion(), Card::received(1, 300, true));
    let mut lent = host_driver::nic::EndpointCard(&mut card.stage.nic);
    let completion = plain.poll(&mut lent).expect("the card is there");
    assert_eq!(completion, Some(Card::received(2, 400, true)));
    assert!(card.memory(1000, 300) == with && card.memory(0, 400) == without);
}
