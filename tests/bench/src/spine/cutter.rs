//! One run, cut off where it is wanted, with frames of the host's beside it.

mod application;
mod init;
mod neighbour;
mod owner;
mod run;

use super::card::{Kit, SpineCard};
use super::cuts::{Cause, PeerCause, Row, Subject};
use super::router;
use super::traffic::{LOOK, Traffic};
use anyhow::{Result, bail, ensure};
use application::Application;
pub(super) use application::ENDPOINT;
use host_interface::spine::counts::{Count, Counts};
use host_interface::spine::{BlockWord, DomainCount, HandlerCount};
pub(super) use init::init;
use neighbour::{Beside, Neighbour};
use owner::{Owner, Seen};
use run::{Places, Run, follow};
use spine_linker::endpoint::HandlerOf;
use tigon_firmware::memory::layout::POOL_SLOTS;
use tigon_firmware::memory::shared::{SPINE_QUEUED, SPINE_RUNNING, SPINE_TAKEN};

/// The watchdog's time, of which CPU B makes no use: the cut comes first.
const WATCHDOG: u32 = 255;
/// Bytes of stack that `init` may need, as the policy has it.
const STACK: u32 = 256;

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
    /// What the owner of a screen sees of it.
    seen: Seen,
    /// The words of each message that an application gets.
    messages: Vec<usize>,
    /// What is to be seen beside another card.
    beside: Beside,
}

impl Done {
    /// Whether a run was what it is alone, or nothing.
    pub fn judge(&self, whole: &Done, row: &mut Row) -> Result<()> {
        let nothing = self.counts == OVERRUN && self.has_no_effect();
        let all = self.did_as(whole);
        match (self.was_cut, nothing, all) {
            (true, true, _) => {
                row.cuts += 1;
                row.in_text += u64::from(self.in_text);
            }
            // It had asked for all that it asks for, and returned; or it has panicked.
            (true, false, true) if !self.in_text => row.too_late += 1,
            (false, _, true) => {}
            _ => bail!("neither all nor nothing: {self:?}; alone it was {whole:?}"),
        }
        Ok(())
    }

    fn did_as(&self, other: &Done) -> bool {
        self.counts == other.counts
            && self.answers == other.answers
            && self.seen == other.seen
            && self.messages == other.messages
            && self.beside == other.beside
    }

    /// Whether another card, or an application beside the tested one, has heard of it.
    pub fn is_seen_beside(&self) -> bool {
        self.beside != Beside::default()
    }

    fn has_no_effect(&self) -> bool {
        let Done {
            answers,
            seen,
            messages,
            beside,
            ..
        } = self;
        let is_quiet = answers.is_empty() && messages.is_empty();
        is_quiet && *seen == Seen::default() && *beside == Beside::default()
    }
}

/// Counts that a run may change, in front of the domain's own counters.
const COUNTS: [Count; 8] = [
    Count::Handlers(HandlerCount::Runs),
    Count::Handlers(HandlerCount::Overruns),
    Count::Handlers(HandlerCount::Panics),
    Count::Handlers(HandlerCount::Faults),
    Count::Domain(DomainCount::Consumed),
    Count::Domain(DomainCount::Dropped),
    Count::Domain(DomainCount::Transmitted),
    Count::Domain(DomainCount::Suspended),
];
const OVERRUNS: usize = 1;
const CONSUMED: usize = 4;
const DROPPED: usize = 5;
const TRANSMITTED: usize = 6;

/// The counts of a run that was cut off, and has done nothing.
const OVERRUN: [u32; 16] = {
    let mut counts = [0; 16];
    counts[0] = 1;
    counts[OVERRUNS] = 1;
    counts
};

/// By how much the counts of [`COUNTS`], and the counters, have grown.
fn grown(before: &Counts, after: &Counts) -> [u32; 16] {
    let words = |counts: &Counts| {
        let of_runs = COUNTS.map(|count| counts.of(count));
        of_runs.into_iter().chain(counts.counters())
    };
    let mut grown = [0; 16];
    for (place, (now, then)) in grown.iter_mut().zip(words(after).zip(words(before))) {
        *place = now.wrapping_sub(then);
    }
    grown
}

/// A card on which the runs of one handler are cut off.
pub(super) struct Bench {
    card: SpineCard,
    places: Places,
    traffic: Traffic,
    domain: u32,
    run: Run,
    /// Who owns the screen, if the handler is one of videos.
    owner: Option<Owner>,
    /// Who sends the handler messages, if an application does.
    application: Option<Application>,
    /// The other card, if the handler has to do with one.
    neighbour: Option<Neighbour>,
}

impl Bench {
    /// Powers a card up, and the other one that a subject has to do with.
    pub fn start(kit: &Kit, subject: Option<&Subject>, seed: u32) -> Result<Bench> {
        let (card, neighbour) = match subject.map(|subject| subject.cause) {
            Some(Cause::Peer(cause)) => {
                let (card, neighbour) = Neighbour::start(kit, cause)?;
                (card, Some(neighbour))
            }
            _ => (SpineCard::start(kit, None)?, None),
        };
        Ok(Bench {
            places: Places::of(kit, &card)?,
            traffic: Traffic::new(card.nic.station(), seed),
            card,
            domain: 0,
            run: Run::default(),
            owner: None,
            application: None,
            neighbour,
        })
    }

    /// Loads the handler's extension.
    pub fn load(&mut self, kit: &Kit, subject: &Subject) -> Result<()> {
        let container = kit.container(&subject.folder)?;
        let policy = kit.policy(WATCHDOG, 0)?;
        (self.domain, self.run.stack) = self.card.load(kit, &container, &policy)?;
        self.run.region = self.card.region(self.domain, &container)?;
        if let Some(guard) = subject.guard(self.domain) {
            self.card.guards(&[guard])?;
        }
        if let Some(neighbour) = &mut self.neighbour {
            neighbour.open(kit, &mut self.card, self.domain)?;
        }
        if matches!(subject.cause, Cause::Piece(_) | Cause::Placement) {
            self.owner = Some(Owner::open(&mut self.card, self.domain)?);
        }
        if let Cause::Message(_) = subject.cause {
            self.application = Some(Application::open(&mut self.card, self.domain)?);
        }
        Ok(())
    }

    /// Makes the handler run, among frames of the host's; `number` and `bytes` are those of the
    /// frame, if it gets one. Its run is cut off behind so many instructions.
    pub fn once(
        &mut self,
        subject: &Subject,
        (number, bytes): (u16, usize),
        instructions: Option<u32>,
        row: &mut Row,
    ) -> Result<Done> {
        let station = self.card.nic.station();
        let card = &mut self.card;
        let frame = match (subject.cause, &mut self.owner, &mut self.neighbour) {
            (Cause::Frame(kind), ..) => Some(kind.frame(station, number, bytes)),
            (Cause::Piece(line), Some(owner), _) => Some(owner.piece(card, line, bytes)?),
            (Cause::Placement, Some(owner), _) => {
                owner.place(card)?;
                None
            }
            (Cause::Peer(PeerCause::ForwardsPacket), ..) => {
                Some(router::packet(station, bytes, number))
            }
            (Cause::Peer(PeerCause::SendsMessage), _, Some(neighbour)) => {
                Some(neighbour.order(station, number))
            }
            (Cause::Peer(PeerCause::GetsMessage), _, Some(neighbour)) => {
                neighbour.call(self.domain, subject.handler, number);
                None
            }
            (Cause::Message(call), ..) if let Some(application) = &mut self.application => {
                let to = HandlerOf {
                    domain: self.domain,
                    handler: subject.handler,
                };
                application.send(card, to, call)?;
                None
            }
            _ => bail!("there is no screen, or no other card"),
        };
        let before = self.card.counts(self.domain);
        self.traffic.offer(&mut self.card, frame.as_deref())?;
        let machine = &self.card.machine;
        let cut = follow(machine, &self.places, &self.run, instructions)?;
        machine.pass(LOOK);
        let after = self.card.counts(self.domain);
        let counts = grown(&before, &after);
        if counts[CONSUMED] + counts[DROPPED] != 0
            && let Some(frame) = &frame
        {
            self.traffic.without(frame);
        }
        let answers = counts[TRANSMITTED] as usize;
        let answers = self.traffic.settle(&mut self.card, answers)?;
        let seen = match &mut self.owner {
            Some(owner) => owner.look(&mut self.card)?,
            None => Seen::default(),
        };
        let messages = match &mut self.application {
            Some(application) => application.look(&mut self.card)?,
            None => Vec::new(),
        };
        let beside = match &mut self.neighbour {
            Some(neighbour) => {
                let was_cut = counts[OVERRUNS] != 0;
                neighbour.look(&mut self.card, was_cut)?
            }
            None => Beside::default(),
        };
        row.stores += cut.stores;
        row.plain += self.traffic.take_count();
        Ok(Done {
            was_cut: cut.was_cut,
            in_text: cut.in_text,
            counts,
            answers,
            seen,
            messages,
            beside,
        })
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
        if let Some(neighbour) = self.neighbour.take() {
            neighbour.close(&mut self.card)?;
        }
        let free = self.card.loader.free();
        self.card.unload(self.domain)?;
        let all = self.card.arena_bytes();
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
