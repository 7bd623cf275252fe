//! Tests that QEMU's memory use stays bounded, whatever software does to the card.
//!
//! Both CPUs run random words and the host writes random registers. Two things grow: QEMU's buffer
//! for translated code, up to its limit, and QEMU's data for each block in the buffer:
//!
//! ```text
//!   code buffer, 32 MB:   | block | block |  ..  |     thrown away when it is full
//!                             │       │
//!   heap of CPU A's thread: node    .. or ..  node     a tree's node for each block, from
//!   heap of CPU B's thread:        node                the heap of the thread that made it
//! ```
//!
//! The allocator returns a thread's heap only when the thread ends, and nodes of both threads are
//! mixed in the tree. So each heap grows to the largest number of blocks that its thread ever had
//! in the buffer. This maximum is seldom reached early: the more blocks, the shorter they are. The
//! long run is `TIGON_GROWTH_MINUTES=10 cargo xtask test --no-lint -p tigon2-qemu -- --ignored
//! memory_is_flat_for_minutes --nocapture`.

use crate::card::{Card, SRAM_BYTES};
use crate::monitor::Monitor;
use std::time::{Duration, Instant};
use tigon2_chip::Cpu;
use tigon2_chip::registers::Register;
use vfio_user_nic::message::region;

/// Words of SRAM that are written anew in each round.
const FRESH: u32 = 64;

/// Numbers that look like chance and are the same each time (xorshift).
struct Chance(u32);

impl Chance {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// A word that is an instruction more often than not: ADDIU, ADDU, LW, SW, BEQ.
    fn instruction(&mut self) -> u32 {
        let word = self.next();
        match word % 8 {
            0 | 1 => 0x2400_0000 | word >> 6,
            2 | 3 => 0x0000_0021 | word & 0x03FF_F800,
            4 => 0x8C00_0000 | word >> 6 & 0x03FF_FFFC,
            5 => 0xAC00_0000 | word >> 6 & 0x03FF_FFFC,
            6 => 0x1000_0000 | word >> 6 & 0x03FF_001F,
            _ => word,
        }
    }
}

/// What is looked at.
#[derive(Debug)]
struct Size {
    /// Memory of the process in KB.
    resident: u64,
    /// Of it, heaps of threads.
    heaps: Vec<u64>,
    /// Lines of `info jit`: code's size of the buffer's, and how often it was thrown away.
    code: String,
    flushes: u64,
}

/// Smallest block with the description before it, in bytes of the code buffer.
const SMALLEST_BLOCK: u64 = 256;
/// A node of the tree of blocks, 48 as the allocator rounds it, and a block's share of a
/// bucket of QEMU's hash table, 64 for four blocks.
const NODE: u64 = 64;
/// Bytes between the places at which the allocator begins a thread's heap.
const HEAP_STEP: u64 = 64 << 20;

/// KB of each heap of a thread in a process's `smaps`: anonymous, writable, and begun at a
/// multiple of the largest size that a heap may have.
fn heaps(smaps: &str) -> Vec<u64> {
    let mut heaps = Vec::new();
    let mut inside = false;
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let start = words.first().and_then(|range| range.split_once('-'));
        if let Some((start, _)) = start
            && let Ok(start) = u64::from_str_radix(start, 16)
        {
            inside = words.len() == 5 && words[1] == "rw-p" && start.is_multiple_of(HEAP_STEP);
        } else if inside && words[0] == "Rss:" {
            heaps.push(words[1].parse().expect("a size"));
        }
    }
    heaps
}

fn size(card: &Card, monitor: &mut Monitor) -> Size {
    let path = format!("/proc/{}/status", card.qemu.id());
    let status = std::fs::read_to_string(path).expect("QEMU is a process");
    let resident = status.lines().find(|line| line.starts_with("VmRSS:"));
    let resident = resident.and_then(|line| line.split_whitespace().nth(1));
    let jit = monitor.command(r#"{"execute": "x-query-jit"}"#);
    let after = |name: &str| {
        let text = jit.split_once(name).map_or("", |(_, text)| text);
        text.split('\\')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let smaps = std::fs::read_to_string(format!("/proc/{}/smaps", card.qemu.id()));
    Size {
        heaps: heaps(&smaps.expect("QEMU is a process")),
        resident: resident.and_then(|kb| kb.parse().ok()).expect("a size"),
        code: after("gen code size"),
        flushes: after("TB flush count").parse().expect("a count"),
    }
}

/// A card with its monitor, its complaints unread.
fn start(options: &[&str]) -> (Card, Monitor) {
    let card = Card::start_silent(|folder| {
        let monitor = Monitor::options(folder.path());
        monitor
            .into_iter()
            .chain(options.iter().map(|option| String::from(*option)))
            .collect()
    });
    let monitor = Monitor::connect(card.folder.path());
    (card, monitor)
}

/// One round: new random code here and there, both CPUs run from random places, registers
/// are poked at random.
fn poke(card: &mut Card, chance: &mut Chance) {
    let place = |chance: &mut Chance| (chance.next() % SRAM_BYTES) & !3;
    card.write(Register::MiscHostControl.offset(), 0x2200_0022);
    let mut words = Vec::new();
    for _ in 0..FRESH {
        words.extend(chance.instruction().to_le_bytes());
    }
    card.write(Register::WindowBase.offset(), place(chance) & !0x7FF);
    let posted = card.client().region_post(region::BAR0, 0x800, &words);
    posted.expect("BAR 0 can be written");
    for cpu in [Cpu::A, Cpu::B] {
        card.write(Register::cpu_state(cpu).offset(), 1 << 16);
        card.start_cpu(cpu, place(chance));
    }
    for _ in 0..8 {
        let register = (chance.next() % 0x400) & !3;
        card.write(register, chance.next());
    }
    card.read((chance.next() % 0x400) & !3);
}

fn poke_for(card: &mut Card, chance: &mut Chance, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        poke(card, chance);
    }
}

/// The code buffer here is a quarter of the machine's, so that it is soon full.
#[test]
fn memory_is_flat_once_the_code_buffer_is_full() {
    let (mut card, mut monitor) = start(&["-accel", "tcg,tb-size=8"]);
    let mut chance = Chance(0x2545_F491);
    let start = Instant::now();
    let mut full: Option<Size> = None;
    loop {
        poke_for(&mut card, &mut chance, Duration::from_millis(250));
        let now = size(&card, &mut monitor);
        assert!(start.elapsed() < Duration::from_secs(300), "{now:?}");
        let Some(full) = &full else {
            full = (now.flushes >= 2).then_some(now);
            continue;
        };
        if now.flushes >= full.flushes + 3 {
            let grown = now.resident.saturating_sub(full.resident);
            assert!(grown < 2048, "{grown} KB more: {full:?}, {now:?}");
            break;
        }
    }
}

#[test]
fn the_machine_bounds_the_code_buffer() {
    let (card, mut monitor) = start(&[]);
    let code = size(&card, &mut monitor).code;
    let bound = code
        .split_once('/')
        .and_then(|(_, bound)| bound.parse().ok());
    let bound: u64 = bound.unwrap_or_else(|| panic!("{code}"));
    assert!(bound <= 32 << 20, "{bound}");
}

#[test]
#[ignore = "takes TIGON_GROWTH_MINUTES"]
fn memory_is_flat_for_minutes() {
    let minutes = std::env::var("TIGON_GROWTH_MINUTES").ok();
    let minutes: u32 = minutes.and_then(|text| text.parse().ok()).unwrap_or(10);
    let (mut card, mut monitor) = start(&[]);
    let mut chance = Chance(0x2545_F491);
    println!("start: {:?}", size(&card, &mut monitor));
    let mut sizes = Vec::new();
    for minute in 1..=minutes {
        for _ in 0..4 {
            poke_for(&mut card, &mut chance, Duration::from_secs(15));
            if minute == 1 {
                println!("in minute 1: {:?}", size(&card, &mut monitor));
            }
        }
        sizes.push(size(&card, &mut monitor));
        println!("minute {minute}: {:?}", sizes.last());
    }
    // A block of the smallest size each, and 1 MB for what else a thread has.
    let bound: u64 = sizes[0]
        .code
        .split_once('/')
        .expect("a bound")
        .1
        .parse()
        .expect("bytes");
    let heap = bound / SMALLEST_BLOCK * NODE / 1024 + 1024;
    assert!(sizes[0].heaps.len() >= 2, "those of both CPUs' threads");
    let largest = sizes.iter().flat_map(|size| &size.heaps).max();
    assert!(largest < Some(&heap), "{largest:?} KB, not {heap}");
    let half = &sizes[sizes.len() / 2..];
    let others = half
        .iter()
        .map(|size| size.resident - size.heaps.iter().sum::<u64>());
    let (least, most) = (others.clone().min(), others.max());
    assert!(most < least.map(|least| least + 4096), "{least:?} {most:?}");
}
