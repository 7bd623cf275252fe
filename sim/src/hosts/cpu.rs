//! A host CPU: its clock, its current work, and its account.

use super::account::{Account, Activity};

/// How urgent work is; more urgent work goes first, and interrupts go before all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Threads, of the application or of the kernel.
    Thread,
    /// Work that an interrupt has left to be done with interrupts on.
    SoftInterrupt,
    /// Work with the card's interrupt off.
    Interrupt,
}

/// A piece of work that has begun: what it cost is charged already, its effects come when
/// the CPU's clock has been reached.
#[derive(Debug)]
struct Begun<W> {
    level: Level,
    /// None: the CPU was only on its way out of idling.
    work: Option<W>,
}

/// A CPU of the host. `W` is what pieces of work are described by.
#[derive(Debug)]
pub struct Cpu<W> {
    clock: u64,
    idle: bool,
    current: Option<Begun<W>>,
    /// Work that interrupts have set aside, with the time that it still needs.
    set_aside: Vec<(Begun<W>, u64)>,
    account: Account,
    /// Who ran here last.
    pub context: Context,
}

/// Whose code a CPU ran last: another one costs a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Context {
    /// No owner.
    #[default]
    Nobody,
    /// A network thread's.
    Network,
    /// An application thread's.
    Application(usize),
}

impl<W> Default for Cpu<W> {
    fn default() -> Self {
        Cpu {
            clock: 0,
            idle: true,
            current: None,
            set_aside: Vec::new(),
            account: Account::default(),
            context: Context::Nobody,
        }
    }
}

impl<W> Cpu<W> {
    /// Its time in nanoseconds: of a busy CPU the end of what it does now, of an idle one
    /// since when it has been.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// When it acts next; never while it idles.
    pub fn due(&self) -> Option<u64> {
        (!self.idle).then_some(self.clock)
    }

    /// Whether it has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// What its time was used for. Work that has begun is in it to its end; an idle CPU's
    /// account ends where it fell idle, see [`look`](Self::look).
    pub fn account(&self) -> Account {
        self.account
    }

    /// Brings the account of an idle CPU up to `now`.
    pub fn look(&mut self, now: u64) {
        if self.idle && now > self.clock {
            self.account.add(Activity::Idle, now - self.clock);
            self.clock = now;
        }
    }

    /// Time of set-aside work that is charged but not yet passed.
    pub fn ahead(&self) -> u64 {
        self.set_aside.iter().map(|(_, left)| left).sum()
    }

    /// Uses time.
    pub fn charge(&mut self, activity: Activity, nanoseconds: u64) {
        debug_assert!(!self.idle, "an idle CPU does nothing");
        self.account.add(activity, nanoseconds);
        self.clock += nanoseconds;
    }

    /// Ends idling at `at`, or at once if that has passed; a busy CPU is not disturbed.
    /// Returns whether it idled.
    pub fn wake(&mut self, at: u64) -> bool {
        let idled = self.idle;
        if idled {
            self.look(at);
            self.idle = false;
        }
        idled
    }

    /// There is nothing to do.
    pub fn sleep(&mut self) {
        debug_assert!(self.current.is_none() && self.set_aside.is_empty());
        self.idle = true;
    }

    /// What it now does is `work`; its charges have been made.
    pub fn begin(&mut self, level: Level, work: W) {
        debug_assert!(self.current.is_none());
        let work = Some(work);
        self.current = Some(Begun { level, work });
    }

    /// The clock has been reached: gives the work whose effects come now.
    pub fn finish(&mut self) -> Option<W> {
        self.current.take()?.work
    }

    /// An interrupt comes at `now`: what the CPU does is set aside, its clock is `now`.
    pub fn interrupt(&mut self, now: u64) {
        if self.wake(now) {
            return;
        }
        let left = self.clock.saturating_sub(now);
        let begun = self.current.take().unwrap_or(Begun {
            level: Level::Thread,
            work: None,
        });
        self.set_aside.push((begun, left));
        self.clock -= left;
    }

    /// The level of the work that was set aside last.
    pub fn set_aside(&self) -> Option<Level> {
        self.set_aside.last().map(|(begun, _)| begun.level)
    }

    /// Goes on with the work that was set aside last.
    pub fn resume(&mut self) {
        if let Some((begun, left)) = self.set_aside.pop() {
            self.current = Some(begun);
            self.clock += left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balanced(cpu: &Cpu<&str>) {
        assert_eq!(cpu.account().total(), cpu.clock() + cpu.ahead());
    }

    #[test]
    fn an_interrupt_makes_work_later_by_what_it_takes() {
        let mut cpu = Cpu::default();
        assert!(cpu.wake(100));
        cpu.charge(Activity::Application, 50);
        cpu.begin(Level::Thread, "request");
        assert_eq!(cpu.due(), Some(150));
        cpu.interrupt(120);
        assert_eq!((cpu.clock(), cpu.set_aside()), (120, Some(Level::Thread)));
        balanced(&cpu);
        cpu.charge(Activity::Interrupt, 7);
        assert_eq!(cpu.finish(), None, "its effects have not come");
        cpu.resume();
        assert_eq!(cpu.due(), Some(157));
        balanced(&cpu);
        assert_eq!(cpu.finish(), Some("request"));
        assert_eq!(cpu.account()[Activity::Idle], 100);
    }

    #[test]
    fn a_cpu_that_wakes_up_can_be_interrupted_before_it_has() {
        let mut cpu: Cpu<&str> = Cpu::default();
        cpu.wake(1000);
        cpu.interrupt(400);
        cpu.charge(Activity::Interrupt, 10);
        cpu.resume();
        assert_eq!((cpu.due(), cpu.finish()), (Some(1010), None));
        balanced(&cpu);
    }

    #[test]
    fn idling_is_accounted_to_the_nanosecond() {
        let mut cpu: Cpu<&str> = Cpu::default();
        cpu.look(30);
        assert!(cpu.wake(40) && !cpu.wake(50));
        cpu.charge(Activity::Switch, 5);
        cpu.sleep();
        cpu.look(60);
        assert_eq!((cpu.account()[Activity::Idle], cpu.due()), (55, None));
        balanced(&cpu);
    }
}
