//! Message rings in a schedule: endpoints come, send, take answers, and go.
//!
//! Two endpoints send to the extension that answers. Some of their messages have data. An answer is to
//! a message that was sent and not answered, in the order in which they were sent; some messages have
//! none, as the extension may be cut off or gone. What an endpoint has sent is fetched, all of it, and
//! runs or is dropped, once. One is closed at any moment, then the card leaves its memory alone.

use super::super::window::Window;
use super::below;
use anyhow::{Context, Result, ensure};
use host_driver::dma::DmaMemory;
use host_interface::spine::Outcome;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use spine_linker::endpoint::{Endpoint, HandlerOf, RingSizes, doorbell};
use spine_linker::load::{EndpointConfig, LoadError, Loader, handlers_of};
use std::collections::VecDeque;

/// The endpoints, in mailboxes of their own.
const NUMBERS: [u32; 2] = [9, 40];
const SIZES: RingSizes = RingSizes {
    slots: 8,
    bulk: PLACES * PLACE,
};
/// Places for data, in turn, and bytes of one: a message's have to stay until it has run, and more
/// than a ring of messages may wait for that.
const PLACES: u32 = 32;
const PLACE: u32 = 64;
/// Handlers of the extension: one sends the arguments back, one the length and a sum of the data.
const ANSWERS: u8 = 0;
const SUMS: u8 = 4;
/// Where the card sees their memory.
const FIRST_IOVA: u64 = 0xFF_FFFF_0000;
/// How often an endpoint is closed, for 10 ms each, at most.
const TRIES: u32 = 20;
/// Turns within which all is fetched and has run.
const PATIENCE: u32 = 4000;

/// What endpoints did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Talked {
    /// Endpoints that were opened.
    pub opened: u64,
    /// Messages that they have sent.
    pub sent: u64,
    /// Answers that they have got.
    pub answered: u64,
}

/// One endpoint's owner.
#[derive(Default)]
struct Owner {
    open: Option<Endpoint<DmaMemory>>,
    /// What an answer to each message would be.
    sent: VecDeque<Vec<u32>>,
    produced: u32,
    /// Whether it waits until all of them are over, and for how many turns it has.
    settles: Option<u32>,
    /// How often the firmware could not close it yet.
    tries: u32,
}

/// The owners.
pub(super) struct Rings {
    owners: [Owner; NUMBERS.len()],
    /// Their own, so that other deeds are what they would be without them.
    random: SplitMix64,
    pub(super) talked: Talked,
}

impl Rings {
    pub(super) fn new(seed: u64) -> Rings {
        Rings {
            owners: Default::default(),
            random: SplitMix64::seed_from_u64(seed ^ 0x5249_4E47),
            talked: Talked::default(),
        }
    }

    /// A turn of one of them, with the extension in a domain if it is loaded.
    pub(super) fn turn(
        &mut self,
        card: &mut Window,
        loader: &mut Loader,
        domain: Option<u32>,
    ) -> Result<()> {
        let random = &mut self.random;
        let which = below(random, NUMBERS.len() as u64) as usize;
        let (Some(owner), Some(number)) = (self.owners.get_mut(which), NUMBERS.get(which)) else {
            return Ok(());
        };
        let refused = card.machine.lock().refused_accesses();
        ensure!(refused == 0, "the card reached for memory behind its close");
        let talked = &mut self.talked;
        let done = match (owner.open.is_some(), domain) {
            (false, Some(domain)) => {
                // Behind the driver's, each somewhere else.
                let iova = FIRST_IOVA + talked.opened * 0x1_0000;
                let memory = DmaMemory::new(SIZES.bytes(), iova)?;
                card.machine.lock().map(memory.clone());
                owner.open(card, loader, *number, domain, memory, talked)
            }
            (false, None) => Ok(()),
            (true, domain) => owner.act(card, loader, random, *number, domain, talked),
        };
        done.with_context(|| format!("endpoint {number}"))
    }

    /// The domain is to be unloaded: nobody may call it any more.
    pub(super) fn withdraw(&mut self, card: &mut Window, loader: &mut Loader) -> Result<()> {
        for number in NUMBERS {
            loader.grant(card, number, 0)?;
        }
        Ok(())
    }
}

impl Owner {
    fn open(
        &mut self,
        card: &mut Window,
        loader: &mut Loader,
        number: u32,
        domain: u32,
        memory: DmaMemory,
        talked: &mut Talked,
    ) -> Result<()> {
        let config = EndpointConfig {
            address: memory.iova(),
            sizes: SIZES,
            handlers: handlers_of(domain),
            interrupts: false,
        };
        loader.open_endpoint(card, number, &config)?;
        let counts = loader.endpoint_counts(card, number)?;
        ensure!(
            counts.fetched == 0 && counts.delivered == 0,
            "it begins with {counts:?}"
        );
        *self = Owner {
            open: Some(Endpoint::new(memory, SIZES)),
            ..Owner::default()
        };
        talked.opened += 1;
        Ok(())
    }

    fn act(
        &mut self,
        card: &mut Window,
        loader: &mut Loader,
        random: &mut SplitMix64,
        number: u32,
        domain: Option<u32>,
        talked: &mut Talked,
    ) -> Result<()> {
        self.take(card, loader, number, talked)?;
        if self.tries != 0 {
            return self.close(card, loader, number);
        }
        if let Some(left) = self.settles {
            return self.settle(card, loader, number, left);
        }
        match (below(random, 16), domain) {
            (0, _) => self.close(card, loader, number),
            (1, _) => {
                self.settles = Some(PATIENCE);
                Ok(())
            }
            (2..10, Some(domain)) => self.send(card, loader, random, number, domain, talked),
            _ => Ok(()),
        }
    }

    fn ring(&self, card: &mut Window, loader: &mut Loader, number: u32) -> Result<()> {
        let open = self.open.as_ref().context("it is closed")?;
        Ok(loader.ring_endpoint(card, number, doorbell(open.memory())?)?)
    }

    fn send(
        &mut self,
        card: &mut Window,
        loader: &mut Loader,
        random: &mut SplitMix64,
        number: u32,
        domain: u32,
        talked: &mut Talked,
    ) -> Result<()> {
        let open = self.open.as_mut().context("it is closed")?;
        for _ in 0..=below(random, 3) {
            if open.room()? == 0 {
                break;
            }
            let serial = self.produced;
            let (handler, bytes) = match below(random, 3) {
                0 => (SUMS, 4 + 4 * (below(random, 15) as usize)),
                _ => (ANSWERS, 0),
            };
            let to = HandlerOf { domain, handler };
            if bytes == 0 {
                open.put(to, &[serial, number])?;
                self.sent.push_back(vec![serial, number]);
            } else {
                let offset = PLACE * (serial % PLACES);
                open.put_bulk(to, &[], offset, &serial.to_le_bytes().repeat(bytes / 4))?;
                self.sent.push_back(vec![bytes as u32, serial.swap_bytes()]);
            }
            self.produced += 1;
            talked.sent += 1;
        }
        self.ring(card, loader, number)
    }

    fn take(
        &mut self,
        card: &mut Window,
        loader: &mut Loader,
        number: u32,
        talked: &mut Talked,
    ) -> Result<()> {
        let mut any = false;
        while let Some(answer) = self.open.as_mut().context("it is closed")?.take()? {
            let arguments = answer.arguments;
            loop {
                let next = self.sent.pop_front();
                let next = next.with_context(|| format!("an answer to nothing: {arguments:?}"))?;
                if next == arguments {
                    break;
                }
            }
            talked.answered += 1;
            any = true;
        }
        if any {
            self.ring(card, loader, number)?;
        }
        Ok(())
    }

    /// Waits until what was sent is over, then closes.
    fn settle(
        &mut self,
        card: &mut Window,
        loader: &mut Loader,
        number: u32,
        left: u32,
    ) -> Result<()> {
        let counts = loader.endpoint_counts(card, number)?;
        let over = counts.delivered + counts.dropped.iter().sum::<u32>();
        ensure!(
            over <= counts.fetched && counts.fetched <= self.produced,
            "{counts:?}, {} sent",
            self.produced
        );
        if over == self.produced {
            return self.close(card, loader, number);
        }
        ensure!(left != 0, "{counts:?}, {} sent", self.produced);
        self.settles = Some(left - 1);
        Ok(())
    }

    fn close(&mut self, card: &mut Window, loader: &mut Loader, number: u32) -> Result<()> {
        match loader.close_endpoint(card, number) {
            // Where the bus is slow and full, later.
            Err(LoadError::Refused(Outcome::Busy)) if self.tries < TRIES => {
                self.tries += 1;
                return Ok(());
            }
            done => done?,
        }
        let open = self.open.take().context("it is closed")?;
        card.machine.lock().unmap(open.memory());
        Ok(())
    }
}
