//! Tests random peers: the server answers every whole command once and in order, or disconnects,
//! and serves the next client.

mod common;

use common::raw::{Raw, framed, version};
use common::*;
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fd::AsFd;
use std::sync::LazyLock;
use vfio_user_nic::message::{flags, region};

/// One server for all cases: what one leaves behind, another finds.
static BENCH: LazyLock<Bench> = LazyLock::new(Bench::new);

fn works() {
    assert_eq!(
        BENCH.client().device_info().unwrap().num_regions,
        region::COUNT
    );
}

/// Payloads with numbers that are often nearly right.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        3 => 0u32..40,
        1 => Just(0x1000),
        1 => Just(0x3008),
        1 => Just(0x4000),
        1 => Just(u32::MAX),
        1 => any::<u32>(),
    ];
    let words = vec(number, 0..12).prop_map(|words| {
        words
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect::<Vec<_>>()
    });
    prop_oneof![4 => words, 1 => vec(any::<u8>(), 0..64)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..400), negotiated: bool) {
        let mut raw = Raw::connect(&BENCH.path);
        if negotiated {
            raw.send(&version());
        }
        raw.send(&bytes);
        drop(raw);
        works();
    }

    #[test]
    fn random_messages(
        messages in vec((0u16..18, 0u32..64, payload(), 0usize..3), 1..40),
    ) {
        let mut raw = Raw::negotiated(&BENCH.path);
        let (memory, event) = (memory(0x4000), event());
        let fds = [memory.as_fd(), event.as_fd()];
        let mut expected = Vec::new();
        for (i, (command, flags, payload, files)) in messages.iter().enumerate() {
            let message = framed(i as u16, *command, *flags, payload);
            match files {
                0 => raw.send(&message),
                n => raw.send_with(&message, &fds[..*n]),
            }
            if flags & flags::TYPE != flags::REPLY && flags & flags::NO_REPLY == 0 {
                expected.push((i as u16, *command));
            }
        }
        for (id, command) in expected {
            let mut reply = raw.reply();
            // DMA by message, which a random map and a write may bring about.
            while let Some((header, _)) = &reply
                && header.is_command()
            {
                raw.send(&framed(header.id, header.command, flags::REPLY | flags::ERROR, &[]));
                reply = raw.reply();
            }
            let (header, _) = reply.expect("the session goes on");
            prop_assert_eq!((header.id, header.command), (id, command));
        }
        drop(raw);
        works();
    }

    /// Any number of clients at the door, at any stage, in any order of going: whoever
    /// comes then is served.
    #[test]
    fn random_visitors(
        visitors in vec((0usize..4, vec(any::<u8>(), 0..40), any::<bool>()), 0..12),
    ) {
        let mut stay = Vec::new();
        for (stage, bytes, stays) in &visitors {
            let mut raw = Raw::connect(&BENCH.path);
            let whole = framed(1, 13, flags::NO_REPLY, &[]);
            match stage {
                0 => raw.send(bytes),
                1 => raw.send(&version()[..bytes.len()]),
                2 => raw.send(&version()),
                _ => raw.send(&[version(), whole[..bytes.len().min(15)].to_vec()].concat()),
            }
            if *stays {
                stay.push(raw);
            }
        }
        works();
        stay.truncate(visitors.len() / 3);
        works();
    }
}
