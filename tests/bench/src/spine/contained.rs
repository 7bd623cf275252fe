//! Hostile handlers that pass all walls but the last: each is contained, and the others go on.
//!
//! Datagrams go into the host at nine tenths of the wire's rate. Meanwhile frames for a hostile
//! handler arrive. What it does is counted as what it is, it loses nobody's frame but its own, and
//! the host's datagrams keep their rate.

use super::card::Kit;
use super::churn::{account, drain};
use super::flooded::{self, Datagrams, Flooded};
use super::frames::{Kind, WANTED};
use super::loaded::Loaded;
use anyhow::{Context, Result};
use comfy_table::Table;
use host_interface::spine::counts::Count;
use host_interface::spine::{DomainCount, HandlerCount};
use serde::Serialize;
use spine_image::interface::{self, Number};
use spine_image::{Builder, Grade, RelocationKind, Section, Target};
use spine_linker::guard::Guard;
use spine_linker::load::Loader;
use testbed::conditions::Conditions;
use testbed::paths::board_file;
use tigon2_model::Board;
use tigon2_sim::asm::{
    A0, A1, NOP, RA, T0, V0, ZERO, addiu, addu, bne, immediate, j, jr, lui, lw, sw,
};
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::arrivals::{Arrivals, Pattern};
use tigon2_sim::workload::experiment::wire_limit;
use tigon2_sim::workload::testbench::{Load, Setup, Source, Testbench};

use crate::simulated::tables::framed;

/// Bytes of the host's datagrams, and their part of the wire's rate.
const DATAGRAM: usize = 1472;
const PART: f64 = 0.9;
/// Nanoseconds of a look, and between two frames for the handler.
const LOOK: u64 = 10_000_000;
const APART: u64 = 200_000;
/// Runs in a row that may be cut off, and a run's microseconds.
const PATIENCE: u32 = 3;
const WATCHDOG: u32 = 10;
/// Registers.
const A2: u32 = 6;
const SP: u32 = 29;

/// A hostile handler.
struct Hostile {
    name: &'static str,
    /// A crate in the checkout, or instructions.
    what: What,
    handler: u8,
    /// The word behind the EtherType of its frames.
    word: u16,
    /// What each run of it is counted as.
    counted: Count,
}

enum What {
    Crate(&'static str),
    Words(Vec<u32>),
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Contained {
    /// What it does.
    pub name: &'static str,
    /// What its runs are counted as.
    pub counted: String,
    /// Runs of it.
    pub runs: u32,
    /// Of them those that were counted so.
    pub of_them: u32,
    /// Whether it was suspended.
    pub suspended: bool,
    /// The host's datagrams a second, without frames for it and with them.
    pub rates: [f64; 2],
}

impl Contained {
    /// What the others have lost, as a share.
    pub fn loss(&self) -> f64 {
        1.0 - self.rates[1] / self.rates[0]
    }
}

/// A branch that is always taken, to itself; less one leads to the instruction before.
const SPIN: u32 = 0x1000_FFFF;

fn all() -> Vec<Hostile> {
    let source = |name, folder, handler, word, counted| Hostile {
        name,
        what: What::Crate(folder),
        handler,
        word,
        counted,
    };
    let words = |name, words: &[u32], counted| Hostile {
        name,
        what: What::Words(words.to_vec()),
        handler: 0,
        word: 0,
        counted,
    };
    let back = [jr(RA), NOP];
    // All that are not the caller's.
    let junk: Vec<u32> = (3..16)
        .chain([24, 25])
        .map(|register| addiu(register, ZERO, -1))
        .collect();
    vec![
        source(
            "never returns",
            "tests/extensions/infinite",
            7,
            0,
            Count::Handlers(HandlerCount::Overruns),
        ),
        source(
            "hides in the runtime",
            "tests/extensions/importing",
            0,
            0,
            Count::Handlers(HandlerCount::Overruns),
        ),
        source(
            "index out of bounds",
            "tests/extensions/panicking",
            0,
            20,
            Count::Handlers(HandlerCount::Panics),
        ),
        source(
            "asks for more than there is, many times",
            "tests/extensions/effects",
            7,
            0,
            Count::Handlers(HandlerCount::Overruns),
        ),
        source(
            "keeps all frames that it can",
            "tests/extensions/keeping",
            2,
            0,
            Count::Domain(DomainCount::Consumed),
        ),
        source(
            "posts to itself, for ever",
            "tests/extensions/posting",
            0,
            0,
            Count::Domain(DomainCount::Consumed),
        ),
        words(
            "jumps to its own delay slot's branch",
            &[SPIN, NOP],
            Count::Handlers(HandlerCount::Overruns),
        ),
        words(
            "counts down from 2^32",
            &[
                lui(T0, 0xFFFF),
                bne(ZERO, T0, -1),
                addiu(T0, T0, -1),
                jr(RA),
                NOP,
            ],
            Count::Handlers(HandlerCount::Overruns),
        ),
        words(
            "spins on loads",
            &[lw(T0, 0, A1), SPIN - 1, NOP],
            Count::Handlers(HandlerCount::Overruns),
        ),
        words(
            "loads a word from an odd address",
            &[&[lw(V0, 2, ZERO)][..], &back].concat(),
            Count::Handlers(HandlerCount::Faults),
        ),
        words(
            "loads a halfword from an odd address",
            &[&[immediate(0x25, V0, ZERO, 1)][..], &back].concat(),
            Count::Handlers(HandlerCount::Faults),
        ),
        words(
            "stores a word to an odd address",
            &[&[sw(V0, 2, ZERO)][..], &back].concat(),
            Count::Handlers(HandlerCount::Faults),
        ),
        words(
            "returns a verdict that is none, with bit 31",
            &[lui(V0, 0xFFFF), jr(RA), NOP],
            Count::Handlers(HandlerCount::Runs),
        ),
        words(
            "leaves no register of its own as it was",
            &[&junk[..], &[jr(RA), addu(V0, ZERO, ZERO)]].concat(),
            Count::Domain(DomainCount::Consumed),
        ),
    ]
}

/// A container whose handler 0 has these instructions.
fn container(kit: &Kit, words: &[u32]) -> Vec<u8> {
    let init = [
        addiu(SP, SP, -24),
        sw(RA, 20, SP),
        lui(A0, 0),
        addiu(A0, A0, 0),
        addiu(A1, ZERO, 0),
        j(0) | 1 << 26,
        addiu(A2, ZERO, 0),
        lw(RA, 20, SP),
        addiu(SP, SP, 24),
        jr(RA),
        NOP,
    ];
    let mut builder = Builder::new("hostile", Grade::Language, kit.build);
    let mut behind = 0;
    for (name, words) in [("init", &init[..]), ("handler", words)] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let length = bytes.len() as u32;
        if let Some(text) = builder.sections.first_mut() {
            text.extend(bytes);
        }
        builder.function(name, behind, length);
        behind += length;
    }
    let handler = Target::Section(Section::Text, 4 * init.len() as u32);
    for (site, kind) in [(8, RelocationKind::High), (12, RelocationKind::Low)] {
        builder.relocation(Section::Text, site, kind, handler);
    }
    if let Some(add) = interface::ALL.get(Number::AddHandler as usize) {
        let import = Target::Import(builder.import(add.name, add.hash()));
        builder.relocation(Section::Text, 20, RelocationKind::Jump, import);
    }
    kit.sign(&builder)
}

/// Loads each hostile extension beside the host's datagrams, and sends it frames.
///
/// # Errors
/// If a wall refuses it, or the card does not carry the datagrams any more.
pub fn run(kit: &Kit) -> Result<Vec<Contained>> {
    let alone: Result<Vec<Contained>> = all().iter().map(|hostile| one(kit, hostile)).collect();
    let mut rows = alone?;
    rows.extend(floods(kit)?);
    Ok(rows)
}

/// The same of an extension that sends messages to another card, and of that card.
fn floods(kit: &Kit) -> Result<[Contained; 2]> {
    let datagrams = Datagrams {
        bytes: DATAGRAM,
        rate: PART * wire_limit(DATAGRAM),
        nanoseconds: LOOK,
    };
    let [here, there] = flooded::run(kit, datagrams)?;
    let contained = |name, card: Flooded| Contained {
        name,
        counted: format!("{:?}", HandlerCount::Runs),
        runs: card.runs,
        of_them: card.runs,
        suspended: card.suspended,
        rates: card.rates,
    };
    Ok([
        contained("floods the other card: seen here", here),
        contained("floods the other card: seen there", there),
    ])
}

fn one(kit: &Kit, hostile: &Hostile) -> Result<Contained> {
    let container = match &hostile.what {
        What::Crate(folder) => kit.container(folder.as_ref())?,
        What::Words(words) => container(kit, words),
    };
    let text = board_file()?;
    let board = Board::from_toml(&text).context("the board file")?;
    let parameters = Parameters::from_toml(&text, "default").context("the board file")?;
    let setup = Conditions::default().of(Setup::new(board, parameters, &kit.image));
    let mut testbench = Testbench::start(&setup)?;
    let rate = PART * wire_limit(DATAGRAM);
    let arrivals = Arrivals::new(Pattern::Constant, rate, testbench.now(), setup.seed);
    let mut load = Load {
        send: None,
        receive: Some(Source::new(testbench.inbound(DATAGRAM)?, arrivals)),
    };
    testbench.run(&mut load, LOOK / 2)?;
    let mut card = Loaded::new(&mut testbench, &mut load);
    let mut loader = Loader::find(&mut card)?;
    let policy = kit.policy(WATCHDOG, PATIENCE)?;
    let loaded = loader.load(&mut card, &container, &policy, &kit.build);
    let (domain, _) = loaded.with_context(|| hostile.name)?;
    loader.set_guards(
        &mut card,
        &[Guard::ether_type(domain, hostile.handler, WANTED)],
    )?;
    let mut rates = [0.0; 2];
    for (with, rate) in rates.iter_mut().enumerate() {
        let before = card.testbench.reading();
        let mut number = 0;
        while u64::from(number) * APART < LOOK {
            if with == 1 {
                let kind = Kind::Typed(hostile.word);
                let frame = kind.frame(card.testbench.nic().station(), number, 60);
                card.testbench.machine().lock().send_frame(0, frame);
            }
            card.pass(APART)?;
            number += 1;
        }
        let after = card.testbench.reading();
        let cycles = (after.cycle - before.cycle) as f64;
        *rate = ((after.received - before.received) as f64 / cycles * 88e6).round();
    }
    drain(&mut testbench)?;
    let mut nothing = Load::default();
    let mut card = Loaded::new(&mut testbench, &mut nothing);
    let counts = loader.counts(&mut card, domain)?;
    let contained = Contained {
        name: hostile.name,
        counted: match hostile.counted {
            Count::Domain(count) => format!("{count:?}"),
            Count::Handlers(count) => format!("{count:?}"),
        },
        runs: counts.of(HandlerCount::Runs),
        of_them: counts.of(hostile.counted),
        suspended: counts.of(DomainCount::Suspended) != 0,
        rates,
    };
    account(&mut testbench, u64::from(kept(&contained))).with_context(|| hostile.name)?;
    Ok(contained)
}

/// Frames that the handler did not leave to the host: it may have consumed messages, too.
fn kept(contained: &Contained) -> u32 {
    match contained.counted.as_str() {
        "Dropped" | "Consumed" => contained.of_them.min((LOOK / APART) as u32),
        _ => 0,
    }
}

/// The table.
pub fn table(rows: &[Contained]) -> Table {
    let mut table = framed(&[
        "handler",
        "runs",
        "counted as",
        "so many",
        "suspended",
        "others lose",
    ]);
    for row in rows {
        table.add_row([
            row.name.to_owned(),
            row.runs.to_string(),
            row.counted.clone(),
            row.of_them.to_string(),
            if row.suspended { "yes" } else { "no" }.to_owned(),
            format!("{:.1} %", 100.0 * row.loss()),
        ]);
    }
    table
}
