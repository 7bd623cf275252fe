//! Implements gdb's requests for the crate `gdbstub`.

use super::arch::{Mips, MipsRegisters};
use super::session::{Lost, Plan, Session, cpu_of, thread_of};
use super::stops::Watch;
use gdbstub::common::{Signal, Tid};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{
    ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps,
    SwBreakpoint, SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, outputln};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use tigon2_chip::Cpu;

/// The most that is read at once; gdb asks again for the rest.
const MOST: usize = 4096;

impl Target for Session {
    type Arch = Mips;
    type Error = Lost;

    fn base_ops(&mut self) -> BaseOps<'_, Mips, Lost> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }

    // Breakpoints come with the packets for them, not as changes of memory.
    fn guard_rail_implicit_sw_breakpoints(&self) -> bool {
        true
    }
}

impl MultiThreadBase for Session {
    fn read_registers(
        &mut self,
        registers: &mut MipsRegisters,
        tid: Tid,
    ) -> TargetResult<(), Self> {
        let cpu = cpu_of(tid);
        self.selected = cpu;
        *registers = self.ask(move |machine| {
            let core = machine.cpus().core(cpu);
            MipsRegisters {
                general: *core.gprs(),
                pc: core.pc(),
            }
        })?;
        Ok(())
    }

    fn write_registers(&mut self, registers: &MipsRegisters, tid: Tid) -> TargetResult<(), Self> {
        let (cpu, registers) = (cpu_of(tid), registers.clone());
        self.ask(move |machine| {
            for (number, value) in registers.general.iter().enumerate() {
                machine.set_gpr(cpu, number, *value);
            }
            if machine.cpus().core(cpu).pc() != registers.pc {
                machine.set_pc(cpu, registers.pc);
            }
        })?;
        Ok(())
    }

    fn read_addrs(&mut self, start: u32, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        let (cpu, bytes) = (cpu_of(tid), data.len().min(MOST));
        let read = self.ask(move |machine| {
            let mut out = vec![0; bytes];
            let there = machine.look_at(cpu, start, &mut out);
            out.truncate(there);
            out
        })?;
        if read.is_empty() && !data.is_empty() {
            return Err(TargetError::NonFatal);
        }
        data[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    fn write_addrs(&mut self, start: u32, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        let (cpu, bytes) = (cpu_of(tid), data.to_vec());
        if self.ask(move |machine| machine.change(cpu, start, &bytes))? {
            Ok(())
        } else {
            Err(TargetError::NonFatal)
        }
    }

    fn list_active_threads(&mut self, thread: &mut dyn FnMut(Tid)) -> Result<(), Lost> {
        for cpu in Cpu::ALL {
            thread(thread_of(cpu));
        }
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl ThreadExtraInfo for Session {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, Lost> {
        let cpu = cpu_of(tid);
        let runs = self.ask(move |machine| machine.cpus().core(cpu).running())?;
        let state = if runs { "runs" } else { "halted" };
        let text = format!("CPU {cpu:?}, {state}");
        let bytes = text.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
        Ok(bytes)
    }
}

impl MultiThreadResume for Session {
    fn resume(&mut self) -> Result<(), Lost> {
        self.go()
    }

    fn clear_resume_actions(&mut self) -> Result<(), Lost> {
        self.plan = Plan::Forward(None);
        Ok(())
    }

    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> Result<(), Lost> {
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }

    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        Some(self)
    }
}

/// Both CPUs always go on together, as on the card: a schedule of gdb's making would be
/// one that no seed gives again. gdb locks only to step over a breakpoint of its own, by
/// one instruction.
impl MultiThreadSchedulerLocking for Session {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Lost> {
        Ok(())
    }
}

impl MultiThreadSingleStep for Session {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Lost> {
        self.plan = Plan::Forward(Some(cpu_of(tid)));
        Ok(())
    }
}

impl ReverseStep<Tid> for Session {
    /// gdb names no thread in front of a step back (it sends `Hc0`), and the stub's answer
    /// to that is the first one: the selected thread is meant.
    fn reverse_step(&mut self, _: Tid) -> Result<(), Lost> {
        self.plan = Plan::Backward(Some(self.selected));
        self.go()
    }
}

impl ReverseCont<Tid> for Session {
    fn reverse_cont(&mut self) -> Result<(), Lost> {
        self.plan = Plan::Backward(None);
        self.go()
    }
}

impl Breakpoints for Session {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl Session {
    fn add_breakpoint(&mut self, address: u32) {
        if !self.stops.breakpoints.contains(&address) {
            self.stops.breakpoints.push(address);
        }
    }

    fn remove_breakpoint(&mut self, address: u32) -> bool {
        let before = self.stops.breakpoints.len();
        self.stops.breakpoints.retain(|known| *known != address);
        self.stops.breakpoints.len() != before
    }
}

impl SwBreakpoint for Session {
    fn add_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        self.add_breakpoint(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        Ok(self.remove_breakpoint(address))
    }
}

impl HwBreakpoint for Session {
    fn add_hw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        self.add_breakpoint(address);
        Ok(true)
    }

    fn remove_hw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        Ok(self.remove_breakpoint(address))
    }
}

impl HwWatchpoint for Session {
    fn add_hw_watchpoint(
        &mut self,
        address: u32,
        bytes: u32,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        let watch = Watch {
            address,
            bytes,
            kind,
        };
        let there = self.ask(move |machine| machine.place_of(Cpu::A, address).is_some())?;
        if there && bytes as usize <= MOST {
            self.stops.watches.push(watch);
            return Ok(true);
        }
        Ok(false)
    }

    fn remove_hw_watchpoint(
        &mut self,
        address: u32,
        bytes: u32,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        let watch = Watch {
            address,
            bytes,
            kind,
        };
        let found = self.stops.watches.iter().position(|known| *known == watch);
        found.map(|place| self.stops.watches.remove(place));
        Ok(found.is_some())
    }
}

/// `monitor where`.
impl MonitorCmd for Session {
    fn handle_monitor_cmd(&mut self, words: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), Lost> {
        if words != b"where" {
            outputln!(out, "monitor where: the card's time");
            return Ok(());
        }
        let (cycle, now) = self.ask(|machine| (machine.cycle(), machine.now()))?;
        outputln!(
            out,
            "cycle {cycle}, {:.3} us since power-on",
            now as f64 / 1e3
        );
        if let Some(how) = &self.end {
            outputln!(out, "the end: {how}");
        }
        Ok(())
    }
}

impl From<Lost> for TargetError<Lost> {
    fn from(lost: Lost) -> Self {
        TargetError::Fatal(lost)
    }
}
