//! Decides the effects of a change of the card, under the machine's lock: which CPUs wake, when
//! the timer fires, and what goes into the outbox.

use super::{CPUS, Inner, Machine, PRECISION, SHOWN};
use crate::host::Host;
use crate::outbox::Errand;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::Ordering;
use tigon2_chip::memory::SPILL_WINDOW;
use tigon2_model::Effect;
use tigon2_model::dma::Direction;
use tigon2_model::mac::is_flow_control;

impl<H: Host> Machine<H> {
    /// Looks who is to wake, sets the timer, and passes on what follows. True if a CPU halts.
    pub(super) fn leave(&self, inner: &mut Inner, now: u64, more: bool) -> bool {
        for cpu in CPUS {
            if inner.parking.sleeps(cpu) {
                let events = inner.card.inspect().events(now, cpu);
                let timer = inner.card.inspect().event_deadline(now, cpu);
                inner.parking.look(cpu, events, timer);
            }
        }

        // Timers of the CPUs are not the main loop's: a CPU that is awake reads the time
        // itself, and one that sleeps has its own alarm.
        let deadline = match inner.card.inspect().work_deadline(now) {
            _ if more => Some(now),
            deadline => deadline.map(|deadline| deadline.max(now + PRECISION)),
        };
        // A timer that goes off too early costs less than setting it each
        // time that the deadline moves.
        if let Some(deadline) = deadline
            && inner.armed.is_none_or(|armed| deadline < armed)
        {
            inner.armed = Some(deadline);
            self.host.arm(Some(deadline));
        }

        // What is left begun has to wait for the client.
        let waits = |way: &Direction| inner.card.inspect().dma_transfer(*way).is_some();
        if Direction::ALL.iter().any(waits) {
            self.waiting.ring();
        }

        self.show_undefined(inner);
        self.write_operations(inner);
        let halts = inner.card.inspect().has_effects() && self.pass_on(inner);
        if inner.refused && inner.card.inspect().can_receive() {
            inner.refused = false;
            self.counts.offered.add();
            self.host.wire_ready();
        }
        halts
    }

    /// Does what follows from the card's work, or puts it into the outbox. True if a CPU
    /// halts.
    fn pass_on(&self, inner: &mut Inner) -> bool {
        let mut halts = false;
        for effect in inner.card.drain_effects() {
            self.outbox.put(match effect {
                Effect::Interrupt(level) => {
                    self.client.interrupts.set_level(level);
                    continue;
                }
                Effect::Transmit(frame) => {
                    if is_flow_control(&frame) {
                        self.counts.pauses.add();
                    }
                    inner.on_way += 1;
                    Errand::Transmit(frame)
                }
                Effect::CpuStart { cpu, pc } => {
                    inner.parking.busy(cpu);
                    Errand::Start(cpu, pc)
                }
                Effect::CpuHalt { cpu } => {
                    inner.parking.busy(cpu);
                    halts = true;
                    self.stopping.store(true, Ordering::Relaxed);
                    Errand::Halt(cpu)
                }
                Effect::SpillBase { cpu, base } => {
                    Errand::Spill(cpu, SPILL_WINDOW.start.wrapping_sub(base))
                }
            });
        }
        halts
    }

    fn write_operations(&self, inner: &mut Inner) {
        let Some(file) = &mut inner.operations else {
            return;
        };
        let lines = inner.card.take_operations().into_iter();
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        if let Err(error) = file.write_all(text.as_bytes()) {
            eprintln!("tigon2: operations are written no more: {error}");
            inner.operations = None;
        }
    }

    fn show_undefined(&self, inner: &mut Inner) {
        let log = inner.card.inspect().undefined();
        let count = log.count();
        let new = count - inner.undefined.min(count);
        if new == 0 {
            return;
        }
        if inner.undefined < SHOWN {
            let kept = log.latest().count();
            let skip = kept.saturating_sub(usize::try_from(new).unwrap_or(kept));
            let left = usize::try_from(SHOWN - inner.undefined).unwrap_or(0);
            for access in log.latest().skip(skip).take(left) {
                eprintln!("tigon2: undefined: {access}");
            }
            if count >= SHOWN {
                eprintln!("tigon2: further undefined accesses are not shown");
            }
        }
        inner.undefined = count;
        self.stalls.undefined.set(count);
    }

    /// Writes every operation of the card to a file from now on, a line each; see
    /// [`tigon2_model::operations`].
    pub fn record_operations(&self, file: File) {
        let mut inner = self.lock();
        inner.card.record_operations();
        inner.operations = Some(file);
    }
}
