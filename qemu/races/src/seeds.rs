//! Deliberate faults for the sources: the races found in the past, and similar ones.

use std::cell::Cell;

/// One of them.
pub struct Seed {
    /// Its name; `seeds::on("NAME")` in the edits switches it on.
    pub name: &'static str,
    /// The story that must find it.
    pub story: &'static str,
    /// What goes wrong.
    pub what: &'static str,
    /// Module, text as it is, and text with the fault as a choice.
    pub edits: &'static [(&'static str, &'static str, &'static str)],
}

thread_local! {
    /// The checker has one thread of the system, whatever it pretends.
    static ON: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether this fault is switched on.
pub fn on(name: &str) -> bool {
    ON.get() == Some(name)
}

/// Runs `f` with a fault, or with none.
pub fn with<R>(name: Option<&'static str>, f: impl FnOnce() -> R) -> R {
    ON.set(name);
    f()
}

/// All of them.
pub const SEEDS: [Seed; 13] = [
    Seed {
        name: "flush_in_mid_call",
        story: "wire",
        what: "the card has room again while QEMU is about to stop reception, and says so \
               from within the delivery: the flush does nothing, reception stays stopped",
        edits: &[
            (
                "effects",
                "            self.host.wire_ready();\n",
                "            if crate::seeds::on(\"flush_in_mid_call\") {\n                \
                 self.outbox.put(Errand::WireReady);\n            } else {\n                \
                 self.host.wire_ready();\n            }\n",
            ),
            (
                "errands",
                "            Errand::Start(cpu, pc) => self.host.start(cpu, pc),\n",
                "            Errand::Start(cpu, pc) => self.host.start(cpu, pc),\n            \
                 Errand::WireReady => self.host.wire_ready(),\n",
            ),
            (
                "outbox",
                "    Spill(Cpu, u32),\n",
                "    Spill(Cpu, u32),\n    /// The card has room.\n    WireReady,\n",
            ),
        ],
    },
    Seed {
        name: "refusal_noted_late",
        story: "wire",
        what: "that a frame was refused is noted in another hold of the lock than that in \
               which it was: the room that came in between is told to nobody",
        edits: &[(
            "wire",
            "            if held {\n                self.refuse(inner);\n            }\n            \
             !held\n        })\n",
            "            if held && !crate::seeds::on(\"refusal_noted_late\") {\n                \
             self.refuse(inner);\n            }\n            !held\n        }) || {\n            \
             self.refuse(&mut self.lock());\n            false\n        }\n",
        )],
    },
    Seed {
        name: "sleep_noted_late",
        story: "sleep",
        what: "a CPU reads its events in one hold of the lock and is noted as asleep in \
               another: the event that comes in between wakes nobody",
        edits: &[(
            "idle",
            "        inner.parking.sleep(cpu, wanted, until);\n",
            "        if crate::seeds::on(\"sleep_noted_late\") {\n            drop(inner);\n            \
             inner = self.lock();\n        }\n        \
             inner.parking.sleep(cpu, wanted, until);\n",
        )],
    },
    Seed {
        name: "alarm_forgotten",
        story: "sleep",
        what: "the sleep of a CPU is ended, but its thread is not told",
        edits: &[(
            "parking",
            "        self.alarm |= self.sleep.take().is_some();\n",
            "        self.alarm |= self.sleep.take().is_some() && !crate::seeds::on(\"alarm_forgotten\");\n",
        )],
    },
    Seed {
        name: "halted_cpu_sleeps_on",
        story: "halted by the host",
        what: "a CPU that is to halt is woken when that is decided, but not when QEMU is \
               told: in between it has fallen asleep again",
        edits: &[(
            "errands",
            "                self.host.halt(cpu);\n                self.rouse(cpu);\n",
            "                self.host.halt(cpu);\n                \
             if !crate::seeds::on(\"halted_cpu_sleeps_on\") {\n                    \
             self.rouse(cpu);\n                }\n",
        )],
    },
    Seed {
        name: "self_halt_goes_on",
        story: "halted by itself",
        what: "a CPU that has halted itself goes on for some instructions after the host has \
               seen it halted",
        edits: &[(
            "machine",
            "        self.see_it_stop(offset);\n        value\n",
            "        if !crate::seeds::on(\"self_halt_goes_on\")\n            \
             && !crate::seeds::on(\"self_halt_seen_early\")\n        {\n            \
             self.see_it_stop(offset);\n        }\n        value\n",
        )],
    },
    Seed {
        name: "self_halt_seen_early",
        story: "halted by itself",
        what: "the host looks whether a CPU is about to stop before it reads the CPU's state: \
               one that halts itself in between is seen halted and has not stopped",
        edits: &[(
            "machine",
            "        let (value, _) = self.enter_and_tell(Work::Later, read);\n",
            "        if crate::seeds::on(\"self_halt_seen_early\") {\n            \
             self.see_it_stop(offset);\n        }\n        \
             let (value, _) = self.enter_and_tell(Work::Later, read);\n",
        )],
    },
    Seed {
        name: "halt_not_awaited",
        story: "halted by the host",
        what: "the host's write that halts a CPU is done before the CPU has stopped",
        edits: &[(
            "machine",
            "        if halts {\n            self.settle();\n        }\n",
            "        if halts && !crate::seeds::on(\"halt_not_awaited\") {\n            \
             self.settle();\n        }\n",
        )],
    },
    Seed {
        name: "other_not_awaited",
        story: "halted by the other",
        what: "a CPU that halts the other one goes on before that has stopped, and reads a \
               program counter of earlier",
        edits: &[(
            "machine",
            "        let waits = halts && is_other && self.host.locked();\n",
            "        let waits = halts\n            && is_other\n            \
             && self.host.locked()\n            \
             && !crate::seeds::on(\"other_not_awaited\");\n",
        )],
    },
    Seed {
        name: "main_loop_not_called",
        story: "halted by each other",
        what: "a CPU that finds the big lock taken leaves its errand to nobody",
        edits: &[(
            "errands",
            "            self.host.call_errands();\n",
            "            if !crate::seeds::on(\"main_loop_not_called\") {\n                \
             self.host.call_errands();\n            }\n",
        )],
    },
    Seed {
        name: "errands_counted_late",
        story: "halted by each other",
        what: "the count of errands is cleared after the lock of the queue was given back: \
               an errand that came in between is not seen",
        edits: &[(
            "outbox",
            "                self.waiting.store(0, Ordering::Relaxed);\n                \
             std::mem::take(&mut *queue)\n            };\n",
            "                if !crate::seeds::on(\"errands_counted_late\") {\n                    \
             self.waiting.store(0, Ordering::Relaxed);\n                }\n                \
             std::mem::take(&mut *queue)\n            };\n            \
             if crate::seeds::on(\"errands_counted_late\") {\n                \
             self.waiting.store(0, Ordering::Relaxed);\n            }\n",
        )],
    },
    Seed {
        name: "open_before_reset",
        story: "entrance",
        what: "a client is let in before the machine's last reset, which undoes what it did",
        edits: &[(
            "entrance",
            "                State::Closed(socket) => State::Made(socket),\n",
            "                State::Closed(socket) if crate::seeds::on(\"open_before_reset\") => {\n                    \
             let (machine, eeprom) = (self.machine.clone(), self.eeprom.clone());\n                    \
             State::Open(socket.serve(machine, eeprom)?)\n                }\n                \
             State::Closed(socket) => State::Ready(socket),\n",
        )],
    },
    Seed {
        name: "unmask_forgets_level",
        story: "pin",
        what: "the pin rises while it is masked, and the unmask does not look at it",
        edits: &[(
            "interrupt",
            "        if self.level && self.msi.is_none() {\n",
            "        if self.level && self.msi.is_none() && !crate::seeds::on(\"unmask_forgets_level\") {\n",
        )],
    },
];
