//! One run, cut off where it is wanted, with frames of the host's beside it.

use super::card::{Kit, SpineCard, Window};
use super::cuts::{Row, Subject};
use super::stores::{Allowed, pc, register, step};
use super::traffic::{LOOK, Traffic};
use anyhow::{Result, bail, ensure};
use host_interface::spine::lease::{NOTED, WORK};
use host_interface::spine::{BlockWord, DomainCount, Outcome};
use spine_linker::load::{Card, LoadError};
use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;
use tigon_firmware::memory::layout::POOL_SLOTS;
use tigon_firmware::memory::shared::{SPINE_QUEUED, SPINE_RUNNING, SPINE_TAKEN};
use tigon_firmware::sides::spine::effects::BYTES;
use tigon2_chip::Register;
use tigon2_chip::bits::CpuState;
use tigon2_sim::Machine;

/// Cycles within which a frame has reached its handler.
const PATIENCE: u32 = 2_000_000;
/// Instructions within which a run that was cut off has ended.
const ENDING: u32 = 200_000;
/// The watchdog's time, of which CPU B makes no use: the cut comes first.
const WATCHDOG: u32 = 255;
/// Bytes of stack that `init` may need, as the policy has it.
const STACK: u32 = 256;
/// Bytes of the words in which the way in saves registers.
const SAVED: u32 = 44;
/// Registers: the list of effects, the stack, the return address.
const A3: usize = 7;
const SP: usize = 29;
const RA: usize = 31;

/// Where the extensions' text is, and what they call; the way into a run and the way out of it;
/// where the way in saves registers.
#[derive(Clone, Debug)]
struct Places {
    arena: Range<u32>,
    imports: [Range<u32>; 2],
    /// Where transfers into a lease are noted.
    noted: Range<u32>,
    enter: u32,
    abort: u32,
    saved: u32,
}

impl Places {
    fn of(kit: &Kit, card: &SpineCard) -> Result<Places> {
        let noted = card.loader.peer_page() + NOTED;
        Ok(Places {
            arena: card.arena(),
            imports: [
                kit.symbol("_imports_start")?..kit.symbol("_imports_end")?,
                kit.symbol("_cold_imports_start")?..kit.symbol("_cold_imports_end")?,
            ],
            noted: noted..noted + (WORK - NOTED),
            saved: kit.symbol("SPINE_SAVED")?,
            enter: kit.symbol("spine_enter")?,
            abort: kit.symbol("spine_abort")?,
        })
    }
}

/// How a run was cut off.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    was_cut: bool,
    in_text: bool,
    stores: u64,
}

/// Follows the next run of CPU A from the way in to the way out, and cuts it off behind so many
/// of its instructions, if it has them.
fn follow(
    machine: &mut Machine,
    places: &Places,
    region: &Range<u32>,
    stack: u32,
    instructions: Option<u32>,
) -> Result<Cut> {
    let mut cycles = 0;
    while pc(machine) != places.enter {
        ensure!(cycles < PATIENCE, "no run; CPU A is at {:#x}", pc(machine));
        machine.run(1);
        cycles += 1;
    }
    let (sp, back) = (register(machine, SP), register(machine, RA));
    let effects = register(machine, A3);
    let allowed = Allowed::new(vec![
        ("region", region.clone()),
        ("stack", sp - stack..sp),
        ("effects", effects..effects + BYTES),
        ("transfers", places.noted.clone()),
        ("saved registers", places.saved..places.saved + SAVED),
    ]);
    let mut cut = Cut::default();
    let mut go = |machine: &mut Machine| -> Result<()> {
        cut.stores += u64::from(step(machine, &allowed)?);
        Ok(())
    };
    while !places.arena.contains(&pc(machine)) {
        go(machine)?;
    }
    let mut done = 0;
    let mut how = None;
    while pc(machine) != back {
        if how.is_none() && instructions == Some(done) {
            how = Some(cut_here(machine, places));
        } else if instructions.is_some_and(|last| done > last + ENDING) {
            bail!("a run that was cut off does not end");
        }
        go(machine)?;
        done += 1;
    }
    cut.was_cut = how.is_some();
    cut.in_text = how == Some(true);
    Ok(cut)
}

/// What CPU B does to a run whose time is over; whether it was in its own text, or in what it
/// calls: anywhere else it is over by itself.
fn cut_here(machine: &mut Machine, places: &Places) -> bool {
    let at = pc(machine);
    let in_import = places.imports.iter().any(|text| text.contains(&at));
    let in_text = places.arena.contains(&at) || in_import;
    if in_text {
        let state = machine.bar_read(Register::CpuAState.offset());
        let halt = CpuState::new().with_halt(true).into_bits();
        machine.bar_write(Register::CpuAState.offset(), state | halt);
        machine.bar_write(Register::CpuAPc.offset(), places.abort);
        machine.bar_write(Register::CpuAState.offset(), state);
    }
    in_text
}

/// What a run has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// Whether there was an instruction to cut it off behind.
    pub was_cut: bool,
    in_text: bool,
    /// By how much the domain's counts have grown.
    counts: [u32; 16],
    /// What came out of the wire besides the host's frames.
    answers: Vec<Vec<u8>>,
}

/// The place of a count among the words of a domain's row.
const fn index(count: DomainCount) -> usize {
    count as usize / 4
}

/// The counts of a run that was cut off, and has done nothing.
const OVERRUN: [u32; 16] = {
    let mut counts = [0; 16];
    counts[index(DomainCount::Runs)] = 1;
    counts[index(DomainCount::Overruns)] = 1;
    counts
};

/// A card on which the runs of one handler are cut off.
pub(super) struct Bench {
    card: SpineCard,
    places: Places,
    traffic: Traffic,
    domain: u32,
    region: Range<u32>,
    stack: u32,
}

impl Bench {
    /// Powers a card up.
    pub fn start(kit: &Kit, seed: u32) -> Result<Bench> {
        let card = SpineCard::start(kit, None)?;
        Ok(Bench {
            places: Places::of(kit, &card)?,
            traffic: Traffic::new(card.nic.station(), seed),
            card,
            domain: 0,
            region: 0..0,
            stack: STACK,
        })
    }

    /// Loads the handler's extension.
    pub fn load(&mut self, kit: &Kit, subject: &Subject) -> Result<()> {
        let container = kit.container(&subject.folder)?;
        let policy = kit.policy(WATCHDOG, 0)?;
        (self.domain, self.stack) = self.card.load(kit, &container, &policy)?;
        self.region = self.card.region(self.domain, &container)?;
        self.card.guards(&[subject.guard(self.domain)])
    }

    /// The card's Ethernet address.
    pub fn station(&self) -> [u8; 6] {
        self.card.nic.station()
    }

    /// A frame for the handler among some of the host's; its run is cut off behind so many
    /// instructions.
    pub fn once(&mut self, frame: &[u8], instructions: Option<u32>, row: &mut Row) -> Result<Done> {
        let before = self.card.counts(self.domain);
        self.traffic.offer(&mut self.card, Some(frame))?;
        let cut = follow(
            &mut self.card.machine.lock(),
            &self.places,
            &self.region,
            self.stack,
            instructions,
        )?;
        self.card.machine.lock().run(LOOK);
        let after = self.card.counts(self.domain);
        let counts = std::array::from_fn(|at| after[at].wrapping_sub(before[at]));
        let kept = [DomainCount::Consumed, DomainCount::Dropped];
        if kept.iter().any(|count| counts[index(*count)] != 0) {
            self.traffic.without(frame);
        }
        let answers = counts[index(DomainCount::Transmitted)] as usize;
        let answers = self.traffic.settle(&mut self.card, answers)?;
        row.stores += cut.stores;
        row.plain += self.traffic.take_count();
        Ok(Done {
            was_cut: cut.was_cut,
            in_text: cut.in_text,
            counts,
            answers,
        })
    }

    /// Whether a run was what it would have been alone, or nothing.
    pub fn judge(&self, done: &Done, whole: &Done, row: &mut Row) -> Result<()> {
        let nothing = done.counts == OVERRUN && done.answers.is_empty();
        let all = (done.counts, &done.answers) == (whole.counts, &whole.answers);
        match (done.was_cut, nothing, all) {
            (true, true, _) => {
                row.cuts += 1;
                row.in_text += u64::from(done.in_text);
            }
            // It had asked for all that it asks for, and returned; or it has panicked.
            (true, false, true) if !done.in_text => row.too_late += 1,
            (false, _, true) => {}
            _ => bail!("neither all nor nothing: {done:?}; alone it was {whole:?}"),
        }
        Ok(())
    }

    /// Nothing is left of all the runs.
    pub fn end(mut self) -> Result<()> {
        for _ in 0..20 {
            self.traffic.offer(&mut self.card, None)?;
            self.traffic.settle(&mut self.card, 0)?;
        }
        let machine = self.card.machine.lock();
        let words = [SPINE_RUNNING.address(), SPINE_QUEUED.address()];
        let [running, queued] = words.map(|address| machine.word(address));
        ensure!(running == 0, "a run is in work");
        ensure!(
            queued == machine.word(SPINE_TAKEN.address()),
            "a slot of the pool is lost"
        );
        drop(machine);
        let free = self.card.loader.free();
        self.card.unload(self.domain)?;
        let all = self.card.arena().len() as u32;
        let block = self.card.window.block();
        let word = |word: u32| self.card.window.word(block + word);
        ensure!(
            word(BlockWord::Kept as u32 + 4 * self.domain) == 0
                && word(BlockWord::FreeSlots as u32) == POOL_SLOTS,
            "a kept frame is lost"
        );
        ensure!(
            self.card.loader.free() == all && free < all,
            "memory is lost"
        );
        Ok(())
    }
}

/// Cuts the `init` of the crate in a folder off at every instruction.
pub(super) fn init(kit: &Kit, folder: &Path) -> Result<Row> {
    let container = kit.container(folder)?;
    let policy = kit.policy(WATCHDOG, 0)?;
    let mut bench = Bench::start(kit, 1)?;
    let mut row = Row::default();
    let free = bench.card.loader.free();
    for instructions in 0.. {
        bench.traffic.offer(&mut bench.card, None)?;
        let mut cutting = Cutting {
            window: bench.card.window.clone(),
            places: &bench.places,
            container: &container,
            instructions,
            cut: Ok(Cut::default()),
        };
        let loaded = bench
            .card
            .loader
            .load(&mut cutting, &container, &policy, &kit.build);
        let cut = cutting.cut?;
        row.stores += cut.stores;
        match loaded {
            Ok((domain, _)) => {
                ensure!(!cut.in_text, "{instructions}: it was cut off and is loaded");
                bench.card.unload(domain)?;
                row.too_late += u64::from(cut.was_cut);
            }
            Err(LoadError::Refused(Outcome::InitCut)) if cut.was_cut => {
                row.cuts += 1;
                row.in_text += u64::from(cut.in_text);
            }
            Err(error) => bail!("{instructions}: {error}"),
        }
        ensure!(bench.card.loader.free() == free, "memory is lost");
        bench.traffic.settle(&mut bench.card, 0)?;
        row.plain += bench.traffic.take_count();
        if !cut.was_cut {
            break;
        }
    }
    Ok(row)
}

/// A card on which the run that a mailbox begins is cut off.
struct Cutting<'a> {
    window: Window,
    places: &'a Places,
    container: &'a [u8],
    instructions: u32,
    cut: Result<Cut>,
}

impl Cutting<'_> {
    fn follow(&self) -> Result<Cut> {
        let card = &self.window;
        // Nothing else is loaded.
        let region = super::card::region(card, 0, self.container)?;
        let mut machine = card.0.lock();
        follow(
            &mut machine,
            self.places,
            &region,
            STACK,
            Some(self.instructions),
        )
    }
}

impl Card for Cutting<'_> {
    type Error = Infallible;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Infallible> {
        self.window.read(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Infallible> {
        self.window.write(address, words)
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Infallible> {
        self.window.ring(mailbox)?;
        self.cut = self.follow();
        Ok(())
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), Infallible> {
        self.window.post(mailbox, high, low)
    }

    fn wait(&mut self, turns: u32) -> bool {
        self.window.wait(turns)
    }
}
