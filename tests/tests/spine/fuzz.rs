//! Containers of the project's extensions with random changes: each wall's answer is a typed error,
//! and a card never sees what was not proven.

use crate::card;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use spine_image::{Grade, Image};
use spine_linker::link::{Place, Runtime, link};
use spine_linker::verify::verify;

/// Changed containers of each extension; `SPINE_FUZZ` says how many of them a longer run makes.
const CHANGED: u64 = 3000;
/// Where the linker places them.
const BASE: u32 = 0x6_8000;
const ROOM: u32 = 0xA000;

/// What the walls said, from the reader on, and how many passed all of them.
#[derive(Debug, Default)]
struct Answers {
    unread: u32,
    unlinked: u32,
    unproven: u32,
    passed: u32,
}

impl Answers {
    fn judge(&mut self, container: &[u8], runtime: &Runtime) {
        let policy = card::policy_with_router();
        let key = &card::signer().public();
        let grant = policy.grant(key, Grade::Language).expect("granted");
        let Ok(image) = Image::parse(container) else {
            self.unread += 1;
            return;
        };
        let Ok(linked) = link(&image, runtime, &[], grant, Place::in_arena(BASE, ROOM)) else {
            self.unlinked += 1;
            return;
        };
        let Ok(proof) = verify(&linked, grant.stack) else {
            self.unproven += 1;
            return;
        };
        assert!(proof.most <= grant.stack, "{proof:?}");
        assert!(linked.bytes() <= ROOM);
        let text = BASE..BASE + linked.text;
        assert!(linked.entries.iter().all(|at| text.contains(at)));
        self.passed += 1;
    }
}

fn change(random: &mut Xoshiro256StarStar, container: &mut [u8]) {
    let mut below = |limit: usize| (random.next_u64() % limit as u64) as usize;
    let words = container.len() / 4;
    for _ in 0..=below(3) {
        let at = 4 * below(words);
        match below(4) {
            0 => container[at + below(4)] ^= 1 << below(8),
            1 => container[at..at + 4].copy_from_slice(&(below(1 << 32) as u32).to_be_bytes()),
            2 => container[at..at + 4].copy_from_slice(&(below(256) as u32).to_be_bytes()),
            _ => {
                let from = 4 * below(words);
                container.copy_within(from..from + 4, at);
            }
        }
    }
}

#[test]
fn changed_extensions_are_answered_and_none_that_passes_breaks_its_proof() {
    let changed = std::env::var("SPINE_FUZZ").ok();
    let changed = changed.map_or(CHANGED, |text| text.parse().expect("a number"));
    let count = spine_image::interface::COUNT as u32;
    let runtime = Runtime {
        imports: (0..count).map(|number| 0xC0_2000 + 16 * number).collect(),
    };
    let names = ["echo", "router"].map(card::ours);
    let of_tests = ["effects", "keeping", "messages", "logging"].map(card::of_tests);
    for (seed, container) in names.into_iter().chain(of_tests).enumerate() {
        let mut random = Xoshiro256StarStar::seed_from_u64(seed as u64);
        let mut answers = Answers::default();
        answers.judge(&container, &runtime);
        assert_eq!(answers.passed, 1, "as it was made: {answers:?}");
        for _ in 0..changed {
            let mut other = container.clone();
            change(&mut random, &mut other);
            answers.judge(&other, &runtime);
        }
        println!("{answers:?}");
        let Answers {
            unread,
            unlinked,
            unproven,
            ..
        } = answers;
        assert!(unread > 0 && unlinked > 0 && unproven > 0, "{answers:?}");
    }
}
