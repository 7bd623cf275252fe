//! The simulation's side of a session: the probe that stops it and executes gdb's requests.

use super::stops::{Contents, Stops, Watch};
use crate::machine::Machine;
use crate::machine::probe::{Position, Probe, Verdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use tigon2_chip::Cpu;
use tigon2_model::CpuFault;

/// Where to stop next.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    /// At the first instruction from a position on.
    To(Position),
    /// At whatever comes first; with a CPU, at its next instruction at the latest.
    Run(Stops, Option<Cpu>),
    /// At `until`, to tell the last stop before it that is not before `from`.
    Search {
        stops: Stops,
        step: Option<Cpu>,
        from: u64,
        until: Position,
    },
}

/// What the session wants.
pub(super) enum Order {
    /// Something to be done with the machine.
    Look(Box<dyn FnOnce(&mut Machine) + Send>),
    /// To go on.
    Go(Mode),
}

/// Why the simulation stands.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// It is where it was to go.
    Arrived,
    /// The step is done.
    Step,
    /// A breakpoint.
    Break(Cpu),
    /// Forward: the instruction that is next touches it, or something else has changed it.
    /// Backward: the instruction that was last did.
    Watch(Cpu, Watch),
    /// A CPU cannot execute its instruction.
    Fault(Cpu, CpuFault),
    /// Ctrl-C.
    Interrupt,
    /// What ran on the card is over.
    End(String),
}

/// Where it stands and why.
#[derive(Clone, Debug)]
pub(super) struct Halt {
    pub at: Position,
    pub why: Why,
}

/// What the session hears.
#[derive(Debug)]
pub(super) enum News {
    /// It stands.
    Stopped(Halt),
    /// It stands at the end of a search that has found this.
    Searched(Option<Halt>),
}

/// The probe.
pub(super) struct RunControl {
    orders: Receiver<Order>,
    report: Box<dyn Fn(News) + Send>,
    interrupt: Arc<AtomicBool>,
    mode: Mode,
    /// What the watched memory held when it was last looked at.
    contents: Contents,
    /// An instruction has changed watched memory itself.
    touched: bool,
    faults: [bool; 2],
    /// The best of a search, and a store whose next instruction is still to come.
    found: Option<Halt>,
    stored: Option<(Cpu, Watch)>,
}

impl RunControl {
    /// A probe that runs to a position and reports it.
    pub fn new(
        orders: Receiver<Order>,
        report: impl Fn(News) + Send + 'static,
        interrupt: Arc<AtomicBool>,
        mode: Mode,
    ) -> RunControl {
        RunControl {
            orders,
            report: Box::new(report),
            interrupt,
            mode,
            contents: Contents::new(),
            touched: true,
            faults: [false; 2],
            found: None,
            stored: None,
        }
    }

    /// When it has to look again.
    fn wakes(&self) -> u64 {
        match &self.mode {
            Mode::To(position) => position.cycle,
            Mode::Run(..) => 0,
            Mode::Search { from, .. } => *from,
        }
    }

    fn begin(&mut self, machine: &mut Machine, mode: Mode) {
        self.mode = mode;
        self.touched = true;
        self.found = None;
        self.stored = None;
        self.faults = Cpu::ALL.map(|cpu| machine.fault(cpu).is_some());
    }

    /// Stands still and does what it is asked, until it may go on.
    fn stand(&mut self, machine: &mut Machine, at: Position, news: News) -> Verdict {
        let pcs = Cpu::ALL.map(|cpu| machine.cpus().core(cpu).pc());
        (self.report)(news);
        loop {
            match self.orders.recv() {
                Ok(Order::Look(what)) => what(machine),
                Ok(Order::Go(mode)) => {
                    self.begin(machine, mode);
                    if let Some(watch) = self.touches_here(machine, at) {
                        let why = Why::Watch(at.cpu.unwrap_or(Cpu::A), watch);
                        (self.report)(News::Stopped(Halt { at, why }));
                        continue;
                    }
                    let same = pcs == Cpu::ALL.map(|cpu| machine.cpus().core(cpu).pc());
                    return if same {
                        Verdict::From(self.wakes())
                    } else {
                        Verdict::Changed
                    };
                }
                Err(_) => return Verdict::Leave,
            }
        }
    }

    /// The watch that the instruction sets off at which it stands: it may have come there
    /// backwards. gdb takes away what it steps over itself.
    fn touches_here(&mut self, machine: &mut Machine, at: Position) -> Option<Watch> {
        match (&self.mode, at.cpu) {
            (Mode::Run(stops, _), Some(cpu)) => Some(stops.touches(machine, cpu)?.0),
            _ => None,
        }
    }

    /// Whether a run ends here.
    fn stops(
        &mut self,
        machine: &mut Machine,
        at: Position,
        stops: &Stops,
        step: Option<Cpu>,
    ) -> Option<Why> {
        if let Some((cpu, fault)) = self.new_fault(machine) {
            return Some(Why::Fault(cpu, fault));
        }
        let cpu = at.cpu?;
        if let Some(watch) = self.changed(machine, stops) {
            return Some(Why::Watch(cpu, watch));
        }
        if step == Some(cpu) {
            return Some(Why::Step);
        }
        if stops.breaks(machine, cpu) {
            return Some(Why::Break(cpu));
        }
        let touched = stops.touches(machine, cpu);
        touched.map(|(watch, _)| Why::Watch(cpu, watch))
    }

    fn new_fault(&mut self, machine: &Machine) -> Option<(Cpu, CpuFault)> {
        Cpu::ALL.into_iter().find_map(|cpu| {
            let fault = machine.fault(cpu);
            let known = std::mem::replace(&mut self.faults[cpu.index()], fault.is_some());
            fault.filter(|_| !known).map(|(fault, _)| (cpu, fault))
        })
    }

    /// The watched memory that DMA, the MAC or the host has changed.
    fn changed(&mut self, machine: &mut Machine, stops: &Stops) -> Option<Watch> {
        if stops.watches.is_empty() {
            return None;
        }
        let now = stops.contents(machine);
        let known = std::mem::replace(&mut self.touched, false);
        let changed = stops
            .changed(&self.contents, &now)
            .filter(|_| !known && self.contents.len() == now.len());
        self.contents = now;
        changed
    }

    /// Takes down what a search meets.
    fn note(&mut self, machine: &mut Machine, at: Position, stops: &Stops, step: Option<Cpu>) {
        let Some(cpu) = at.cpu else { return };
        if let Some((_, watch)) = self.stored.take_if(|(storer, _)| *storer == cpu) {
            let why = Why::Watch(cpu, watch);
            self.found = Some(Halt { at, why });
        }
        if let Some(watch) = self.changed(machine, stops) {
            let why = Why::Watch(cpu, watch);
            self.found = Some(Halt { at, why });
        }
        if step == Some(cpu) {
            let why = Why::Step;
            self.found = Some(Halt { at, why });
        } else if stops.breaks(machine, cpu) {
            let why = Why::Break(cpu);
            self.found = Some(Halt { at, why });
        }
        if let Some((watch, stores)) = stops.touches(machine, cpu) {
            self.touched |= stores;
            self.stored = Some((cpu, watch));
        }
    }

    /// What a search has found when it is at its end.
    fn searched(&mut self, at: Position) -> Option<Halt> {
        // The other CPU stands behind its access already.
        if let Some((cpu, watch)) = self.stored.take() {
            let why = Why::Watch(cpu, watch);
            self.found = Some(Halt { at, why });
        }
        self.found.take()
    }
}

impl Probe for RunControl {
    fn look(&mut self, machine: &mut Machine, at: Position) -> Verdict {
        let interrupted =
            self.interrupt.load(Ordering::Relaxed) && self.interrupt.swap(false, Ordering::Relaxed);
        let news = match std::mem::replace(&mut self.mode, Mode::To(Position::default())) {
            mode if interrupted => {
                self.mode = mode;
                let why = Why::Interrupt;
                Some(News::Stopped(Halt { at, why }))
            }
            Mode::To(goal) => {
                self.mode = Mode::To(goal);
                let there = at >= goal && at.cpu.is_some();
                let why = Why::Arrived;
                there.then_some(News::Stopped(Halt { at, why }))
            }
            Mode::Run(stops, step) => {
                let why = self.stops(machine, at, &stops, step);
                self.mode = Mode::Run(stops, step);
                why.map(|why| News::Stopped(Halt { at, why }))
            }
            Mode::Search {
                stops,
                step,
                from,
                until,
            } => {
                let end = at >= until;
                if !end {
                    self.note(machine, at, &stops, step);
                }
                self.mode = Mode::Search {
                    stops,
                    step,
                    from,
                    until,
                };
                end.then(|| News::Searched(self.searched(at)))
            }
        };
        match news {
            Some(news) => self.stand(machine, at, news),
            None => Verdict::From(self.wakes()),
        }
    }

    fn ended(&mut self, machine: &mut Machine, how: &str) {
        let at = Position {
            cycle: machine.cycle() + 1,
            cpu: None,
        };
        loop {
            let news = match self.mode {
                Mode::Search { .. } => News::Searched(self.searched(at)),
                _ => News::Stopped(Halt {
                    at,
                    why: Why::End(how.to_owned()),
                }),
            };
            if self.stand(machine, at, news) == Verdict::Leave {
                return;
            }
        }
    }
}
