//! Tests random frames: the queue, the hash and its type are those of the reference.

use flow_classify::classifier::LEAST;
use flow_classify::flows::FlowMasks;
use flow_classify::frame::{Whole, Wrapped};
use flow_classify::toeplitz::Bytes;
use flow_classify::{
    BadClassifier, Classifier, ClassifierKind, Frame, HashType, HashTypes, IndirectionTable, Key,
    Memory, Tables, Verdict,
};
use std::collections::BTreeMap;
use tigon2_sim::workload::knet::random::RandomFrames;
use tigon2_sim::workload::knet::reference::{Expected, Reference};

/// Frames of a slice that every run asks about.
const SLICE: usize = 200_000;
/// Frames of the long run.
const LONG: usize = 10_000_000;

/// A classifier of the crate's beside the reference.
struct Pair {
    reference: Reference,
    turn: u32,
    classifier: Classifier,
    tables: Box<Tables>,
}

impl Pair {
    fn new(kind: ClassifierKind, queues: u32, types: HashTypes, key: Key) -> Pair {
        let table = IndirectionTable::equal(queues as u8);
        Pair {
            reference: Reference {
                kind,
                queues,
                types,
                key: key.0,
                table: *table.entries(),
            },
            turn: 0,
            classifier: Classifier::new(kind, queues, types, key.period()).expect("a classifier"),
            tables: Box::new(Tables::new(&key, &table)),
        }
    }

    /// Asks both about a frame that lies in one piece.
    fn agree(&mut self, frame: &[u8]) -> Expected {
        let answer = self.reference.classify(frame, &mut self.turn);
        let mut view = (Whole(frame), &*self.tables);
        let mut same_turn = self.classifier;
        let verdict = self.classifier.classify(&mut view, frame.len() as u32);
        same(answer, verdict, frame);
        let verdict = same_turn.classify_in_general(&mut view, frame.len() as u32);
        same(answer, verdict, frame);
        answer
    }
}

fn same(answer: Expected, verdict: Verdict, frame: &[u8]) {
    let verdict = Expected {
        queue: verdict.queue,
        hash_type: verdict.hash_type,
        hash: verdict.hash,
    };
    assert_eq!(verdict, answer, "{frame:02x?}");
}

/// Keys of each period: the published one and random ones.
fn keys(random: &mut RandomFrames) -> [Key; 4] {
    let bytes = random.bytes(40);
    let filled = |period: usize| {
        let mut key = [0; 40];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = bytes[at % period];
        }
        Key(key)
    };
    [Key::PUBLISHED, filled(2), filled(4), filled(40)]
}

/// All classifiers, keys and types of hash, in turn.
fn pairs(random: &mut RandomFrames) -> Vec<Pair> {
    let mut pairs = vec![
        Pair::new(
            ClassifierKind::SourceAddress,
            4,
            HashTypes::USUAL,
            Key::PUBLISHED,
        ),
        Pair::new(
            ClassifierKind::SourceAddress,
            8,
            HashTypes::USUAL,
            Key::PUBLISHED,
        ),
        Pair::new(
            ClassifierKind::RoundRobin,
            3,
            HashTypes::USUAL,
            Key::PUBLISHED,
        ),
        Pair::new(ClassifierKind::Single, 1, HashTypes::USUAL, Key::PUBLISHED),
    ];
    for key in keys(random) {
        for types in [HashTypes::USUAL, HashTypes::ALL] {
            pairs.push(Pair::new(ClassifierKind::Toeplitz, 4, types, key));
        }
        let some = HashTypes::from_bits(random.below(0x40) as u32);
        pairs.push(Pair::new(ClassifierKind::Toeplitz, 7, some, key));
    }
    pairs
}

/// Asks about so many frames, each with one of the pairs; returns how many had each type.
fn compare(seed: u64, frames: usize) -> BTreeMap<HashType, usize> {
    let mut random = RandomFrames::new(seed);
    let mut pairs = pairs(&mut random);
    let mut seen = BTreeMap::new();
    for number in 0..frames {
        let frame = random.frame();
        let count = pairs.len();
        let answer = pairs[number % count].agree(&frame);
        *seen.entry(answer.hash_type).or_insert(0) += 1;
    }
    seen
}

#[test]
fn random_frames_go_where_the_reference_says() {
    let seen = compare(1, SLICE);
    // The frames are no comparison if most of them are nonsense.
    for hash_type in HashType::ALL {
        let count = seen.get(&hash_type).copied().unwrap_or(0);
        assert!(count > SLICE / 100, "{hash_type:?}: {count} of {SLICE}");
    }
}

/// A minute or two: `cargo test --release -p integration-tests --test classify -- --ignored`.
#[test]
#[ignore = "ten million frames"]
fn ten_million_random_frames_go_where_the_reference_says() {
    let threads = 4;
    std::thread::scope(|scope| {
        for seed in 0..threads {
            scope.spawn(move || compare(1000 + seed, LONG / threads as usize));
        }
    });
}

/// Bytes of a cache of few slots, so that flows take them from each other.
const CACHE: u32 = 1024;

/// The tables beside such a cache.
struct Cached<'a> {
    frame: &'a [u8],
    tables: &'a Tables,
    flows: &'a mut [u32; CACHE as usize / 4],
}

impl Frame for Cached<'_> {
    fn word(&mut self, offset: u32) -> u32 {
        Whole(self.frame).word(offset)
    }

    fn half(&mut self, offset: u32) -> u32 {
        Whole(self.frame).half(offset)
    }
}

impl Memory for Cached<'_> {
    type Pieces = Bytes;

    fn row(&mut self, offset: u32) -> u32 {
        (Whole(self.frame), self.tables).row(offset)
    }

    fn queue(&mut self, entry: u32) -> u32 {
        (Whole(self.frame), self.tables).queue(entry)
    }

    fn flows(&self) -> Option<FlowMasks> {
        Some(FlowMasks::halves(CACHE))
    }

    fn flow(&mut self, offset: u32) -> u32 {
        self.flows[offset as usize / 4]
    }

    fn set_flow(&mut self, offset: u32, value: u32) {
        self.flows[offset as usize / 4] = value;
    }
}

/// Hits and misses of the cache give the hash that there is without it, whatever the key.
#[test]
fn a_cache_of_flows_changes_nothing() {
    for key in [Key::PUBLISHED, Key::SYMMETRIC] {
        let mut random = RandomFrames::new(8);
        let mut pair = Pair::new(ClassifierKind::Toeplitz, 4, HashTypes::ALL, key);
        let few: Vec<Vec<u8>> = (0..200).map(|_| random.frame()).collect();
        let mut flows = [0; CACHE as usize / 4];
        let (mut hits, mut misses) = ([0; 2], [0; 2]);
        for _ in 0..100_000 {
            let frame = if random.below(4) == 0 {
                random.frame()
            } else {
                few[random.below(few.len())].clone()
            };
            let length = frame.len() as u32;
            if length < LEAST {
                continue;
            }
            let mut view = Cached {
                frame: &frame,
                tables: &pair.tables,
                flows: &mut flows,
            };
            let known = [
                pair.classifier.cached_ipv4(&mut view, length),
                pair.classifier.cached_ipv6(&mut view, length),
            ];
            let renewed = [
                pair.classifier.renewed_ipv4(&mut view, length),
                pair.classifier.renewed_ipv6(&mut view, length),
            ];
            let whole = pair.classifier.classify(&mut view, length);
            for version in 0..2 {
                hits[version] += usize::from(known[version].is_some());
                misses[version] += usize::from(known[version] != renewed[version]);
            }
            let reference = pair.reference.classify(&frame, &mut pair.turn);
            let found = known.iter().chain(&renewed).flatten().chain([&whole]);
            for verdict in found {
                same(reference, *verdict, &frame);
            }
        }
        for count in hits.iter().chain(&misses) {
            assert!(*count > 1000, "hits {hits:?}, misses {misses:?}");
        }
    }
}

/// The reader panics when a byte behind the end is asked for; so each prefix of a frame is a
/// test of its own.
#[test]
fn frames_are_cut_at_every_byte() {
    let mut random = RandomFrames::new(2);
    let mut pairs = pairs(&mut random);
    for _ in 0..300 {
        let frame = random.frame();
        for length in 0..=frame.len() {
            for pair in &mut pairs {
                pair.agree(&frame[..length]);
            }
        }
    }
}

/// What lies behind the frame's end, as padding of its slot does, changes nothing.
#[test]
fn bytes_behind_the_datagram_do_not_count() {
    let mut random = RandomFrames::new(3);
    let mut pair = Pair::new(ClassifierKind::Toeplitz, 4, HashTypes::ALL, Key::PUBLISHED);
    let mut hashed = 0;
    for _ in 0..10_000 {
        let mut frame = random.frame();
        let before = pair.agree(&frame);
        if before.hash_type == HashType::None {
            continue;
        }
        hashed += 1;
        let more = random.below(40);
        frame.extend(random.bytes(more));
        assert_eq!(pair.agree(&frame), before);
    }
    assert!(hashed > 5000, "{hashed}");
}

/// A frame that goes round the end of the receive buffer, at each place that it can.
#[test]
fn a_frame_may_go_round_the_buffers_end() {
    let mut random = RandomFrames::new(4);
    let mut pairs = pairs(&mut random);
    const BUFFER: usize = 512;
    for _ in 0..500 {
        let mut frame = random.frame();
        frame.truncate(BUFFER);
        let pair = random.below(pairs.len());
        let pair = &mut pairs[pair];
        for start in (0..BUFFER).step_by(4) {
            let mut buffer = random.bytes(BUFFER);
            for (at, byte) in frame.iter().enumerate() {
                buffer[(start + at) % BUFFER] = *byte;
            }
            let answer = pair.reference.classify(&frame, &mut pair.turn);
            let wrapped = Wrapped {
                buffer: &buffer,
                start,
                length: frame.len(),
            };
            let mut view = (wrapped, &*pair.tables);
            let verdict = pair.classifier.classify(&mut view, frame.len() as u32);
            same(answer, verdict, &frame);
        }
    }
}

/// Both directions of a flow, with and without ports.
#[test]
fn a_symmetric_key_gives_both_directions_one_queue() {
    let mut random = RandomFrames::new(5);
    for (kind, symmetric) in [(Key::SYMMETRIC, true), (Key::PUBLISHED, false)] {
        let mut pair = Pair::new(ClassifierKind::Toeplitz, 8, HashTypes::ALL, kind);
        let mut same = 0;
        for _ in 0..1000 {
            let mut frame = random.bytes(12);
            frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
            frame.extend(random.bytes(28));
            let mut back = frame.clone();
            back[26..30].copy_from_slice(&frame[30..34]);
            back[30..34].copy_from_slice(&frame[26..30]);
            back[34..36].copy_from_slice(&frame[36..38]);
            back[36..38].copy_from_slice(&frame[34..36]);
            same += usize::from(pair.agree(&frame).hash == pair.agree(&back).hash);
        }
        assert_eq!(same == 1000, symmetric, "{same}");
    }
}

/// All fragments of a datagram stay together, and a flow whose datagrams carry DF keeps its
/// ports.
#[test]
fn fragments_go_by_addresses_and_df_is_none() {
    let mut pair = Pair::new(ClassifierKind::Toeplitz, 8, HashTypes::ALL, Key::PUBLISHED);
    let mut random = RandomFrames::new(6);
    let mut frame = random.bytes(12);
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(random.bytes(28));
    let mut with = |fragment: u16| {
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        pair.agree(&frame)
    };
    let (first, middle, last) = (with(0x2000), with(0x2010), with(0x0020));
    assert_eq!(first.hash_type, HashType::Ipv4);
    assert_eq!((first, middle), (middle, last));
    assert_eq!(with(0x4000), with(0), "DF");
    assert_eq!(with(0x4000).hash_type, HashType::UdpIpv4);
}

#[test]
fn what_cannot_be_a_classifier_is_refused() {
    let period = Key::PUBLISHED.period();
    let new = |kind, queues, types| Classifier::new(kind, queues, types, period).map(|_| ());
    let (toeplitz, source) = (ClassifierKind::Toeplitz, ClassifierKind::SourceAddress);
    for queues in [0, 9, u32::MAX] {
        let refused = Err(BadClassifier::Queues(queues));
        assert_eq!(new(toeplitz, queues, HashTypes::USUAL), refused);
    }
    assert_eq!(
        new(source, 3, HashTypes::USUAL),
        Err(BadClassifier::NoPowerOfTwo(3))
    );
    assert_eq!(new(toeplitz, 3, HashTypes::USUAL), Ok(()));
    let types = HashTypes::from_bits(0x41);
    assert_eq!(new(toeplitz, 4, types), Err(BadClassifier::HashTypes(0x41)));
}
