//! What the key passes by, no guard wants; what a guard wants, it gets.

extern crate std;

use super::*;
use crate::memory::words::Words;
use crate::path::receive::guarded::{Guard as _, Key as _};
use std::vec::Vec;

/// Where the receive buffer begins.
const BASE: u32 = 0x15_0000;
/// Frames at these addresses: the last ones go round the end of the buffer.
const STARTS: [u32; 4] = [
    BASE,
    0x1A_0008,
    PACKET_MEMORY_END - 16,
    PACKET_MEMORY_END - 8,
];

/// The handler of a domain as guards name it.
const fn to(domain: u32, handler: u32) -> u32 {
    domain << 8 | handler
}

fn term(offset: u32, mask: u32, value: u32) -> Term {
    Term {
        offset,
        mask,
        value,
    }
}

fn guard(handler: u32, terms: &[Term]) -> Guard {
    let mut guard = Guard {
        handler,
        ..Guard::NONE
    };
    for (place, term) in guard.terms.iter_mut().zip(terms) {
        *place = *term;
        guard.bytes = guard.bytes.max(term.offset + 4);
    }
    guard
}

fn ether_type(handler: u32, kind: u32) -> Guard {
    guard(handler, &[term(12, 0xFFFF_0000, kind << 16)])
}

fn protocol(handler: u32, protocol: u32) -> Guard {
    let ip = term(12, 0xFFFF_FF00, 0x0800_4500);
    guard(handler, &[ip, term(20, 0xFF, protocol)])
}

fn port(handler: u32, port: u32) -> Guard {
    let mut guard = protocol(handler, 17);
    guard.terms[2] = term(36, 0xFFFF_0000, port << 16);
    guard.bytes = 40;
    guard
}

/// Stores a frame's words at `start`, round the end of the buffer.
fn put(memory: &mut Words, start: u32, words: &[u32]) {
    for (at, word) in (start..).step_by(4).zip(words) {
        let at = if at < PACKET_MEMORY_END {
            at
        } else {
            at - PACKET_MEMORY_END + BASE
        };
        memory.store(at, *word);
    }
}

/// xorshift32.
fn random(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

#[test]
fn what_a_guard_wants_the_key_lets_through() {
    let mut seed = 1;
    for round in 0..4000 {
        let mut memory = Words::with_parts();
        let mut guards = Guards::NONE;
        let pick = |seed: &mut u32, handler| match random(seed) % 4 {
            0 => ether_type(
                handler,
                [0x0800, 0x0806, 0x88B5, 0x86DD][random(seed) as usize % 4],
            ),
            1 => protocol(handler, random(seed) % 20),
            2 => guard(handler, &[]),
            _ => port(handler, random(seed) % 64),
        };
        let all: Vec<Guard> = (0..random(&mut seed) % 9)
            .map(|handler| pick(&mut seed, handler % 8))
            .collect();
        guards.set(&mut memory, &all);
        let mut frame: Vec<u32> = (0..16).map(|_| random(&mut seed)).collect();
        // Of the kinds that guards want, most of the time.
        frame[3] = 0x0800_4500 | random(&mut seed) & 0xFF;
        frame[5] = frame[5] & !0xFF | [17, 1, 6, 17][round % 4];
        frame[9] = (random(&mut seed) % 64) << 16;
        if round % 3 == 0 {
            frame[3] = [0x88B5_0000, 0x0806_0001, 0x86DD_6000][round % 9 / 3];
        }
        let length = 14 + random(&mut seed) % 47;
        let start = STARTS[round % 4];
        put(&mut memory, start, &frame);
        let wants = |guard: &&Guard| {
            let terms = guard.terms.iter().filter(|term| term.mask != 0);
            let mut held =
                terms.map(|term| frame[term.offset as usize / 4] & term.mask == term.value);
            length >= guard.bytes && held.all(|held| held)
        };
        let expected = all.iter().find(wants).map(|guard| to(0, guard.handler));
        assert_eq!(guards.find(&mut memory, start, length, BASE), expected);
        if expected.is_some() {
            let bit = guards.key().may_want(&mut memory, start);
            assert_eq!(bit & 1, 1, "{all:?} {frame:x?}");
        }
    }
}

#[test]
fn the_key_passes_by_what_is_for_no_guard() {
    let mut memory = Words::with_parts();
    let mut guards = Guards::NONE;
    let mut frame = [0; 16];
    (frame[3], frame[5], frame[9]) = (0x0800_4500, 17, 4712 << 16);
    put(&mut memory, BASE, &frame);
    for passes in [
        &[ether_type(0, 0x88B5)][..],
        &[port(0, 4711)],
        &[port(0, 4711), port(1, 7), port(2, 53)],
        &[protocol(0, 1), protocol(0, 6)],
    ] {
        guards.set(&mut memory, passes);
        assert_eq!(
            guards.key().may_want(&mut memory, BASE) & 1,
            0,
            "{passes:?}"
        );
    }
    guards.set(&mut memory, &[port(0, 4711), guard(1, &[])]);
    assert_eq!(guards.key(), Key::ALL, "one wants all frames");
}

#[test]
fn guards_of_a_domain_go_and_the_others_keep_their_order() {
    let mut memory = Words::with_parts();
    let mut guards = Guards::NONE;
    let of = |domain, handler| Guard {
        domain,
        ..ether_type(handler, 0x88B5)
    };
    guards.set(&mut memory, &[of(1, 3), of(2, 4), of(1, 5), of(2, 6)]);
    put(&mut memory, BASE, &[0, 0, 0, 0x88B5_0000]);
    assert_eq!(guards.find(&mut memory, BASE, 60, BASE), Some(to(1, 3)));
    guards.forget(&mut memory, 1);
    assert_eq!(guards.find(&mut memory, BASE, 60, BASE), Some(to(2, 4)));
    guards.forget(&mut memory, 2);
    assert!(guards.is_empty());
}
