//! Tables as Promela: a variable and an inline for each event of a machine, a process for each CPU.
//!
//! A CPU takes the most urgent event that is pending and need not wait, and then delivers what its
//! machines have told each other, all in one step: handlers of one CPU do not interrupt each other.
//! The environment defines, for a machine `M`, the expressions `M_<condition>` and
//! `M_<event>_pending`, and the inlines `M_<event>_ack()` and `M_do_<action>()`.

use frame_pipeline::{Class, Table, sdma};
use frame_pipeline::{rdma, recv, send};
use std::fmt::Write;

/// The tables that are verified, and the order in which their events are served.
#[derive(Clone, Debug)]
pub struct Machines {
    /// In the order of [`frame_pipeline::TABLES`].
    pub tables: [Table; 4],
    /// A machine that serves its least urgent event first.
    pub reversed: Option<&'static str>,
    /// Whether CPU B clears a doorbell behind its look at what was posted.
    pub clears_last: bool,
}

impl Default for Machines {
    fn default() -> Self {
        Machines {
            tables: [sdma::TABLE, send::TABLE, recv::TABLE, rdma::TABLE],
            reversed: None,
            clears_last: false,
        }
    }
}

/// Both machines of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpu {
    /// CPU B: SDMA and SEND.
    Transmit,
    /// CPU A: RECV and RDMA.
    Receive,
}

/// What the definitions of all machines begin with.
const HEAD: &str = "\
#define raise(signal) signal##_raised = true
#define lower(signal) signal##_raised = false
";

impl Machines {
    fn of(&self, cpu: Cpu) -> &[Table] {
        match cpu {
            Cpu::Transmit => &self.tables[..2],
            Cpu::Receive => &self.tables[2..],
        }
    }

    /// Names and variables: they stand before the environment.
    pub fn declarations(&self, cpus: &[Cpu]) -> String {
        let mut text = HEAD.to_owned();
        if self.clears_last {
            line(&mut text, "#define CLEARED_LAST");
        }
        for table in cpus.iter().flat_map(|cpu| self.of(*cpu)) {
            let name = table.name;
            for (number, state) in table.states.iter().enumerate() {
                line(
                    &mut text,
                    &format!("#define {name}_{} {number}", state.name),
                );
            }
            line(&mut text, &format!("byte {name}_state = 0;"));
            for event in signals(table) {
                line(&mut text, &format!("bool {name}_{event}_raised;"));
            }
        }
        text
    }

    /// Transitions and CPUs: they stand behind the environment. If `strict`, a CPU looks at its first
    /// machine before its second one, as it does between two handlers; otherwise it takes either.
    pub fn processes(&self, cpus: &[Cpu], strict: bool) -> String {
        let mut text = String::new();
        for cpu in cpus {
            for table in self.of(*cpu) {
                for event in 0..table.events.len() as u8 {
                    transitions(&mut text, table, event);
                }
            }
            self.process(&mut text, *cpu, strict);
        }
        text
    }

    fn process(&self, text: &mut String, cpu: Cpu, strict: bool) {
        let name = match cpu {
            Cpu::Transmit => "cpu_b",
            Cpu::Receive => "cpu_a",
        };
        line(text, &format!("active proctype {name}()\n{{\nend:\tdo"));
        line(text, "\t:: atomic {\n\t\tif");
        let mut more_urgent = String::new();
        for table in self.of(cpu) {
            let mut events = external(table);
            if self.reversed == Some(table.name) {
                events.reverse();
            }
            if !strict {
                more_urgent.clear();
            }
            for event in events {
                let full = format!("{}_{}", table.name, table.events[usize::from(event)].name);
                let served = format!("({full}_pending && !({}))", waits(table, event));
                line(
                    text,
                    &format!("\t\t:: {more_urgent}{served} -> {full}_ack(); {full}_on()"),
                );
                write!(more_urgent, "!{served} && ").unwrap_or_default();
            }
        }
        line(text, "\t\tfi;\n\t\tdo");
        for table in self.of(cpu) {
            for (event, class) in table.classes.iter().enumerate() {
                if *class == Class::Signal {
                    let full = format!("{}_{}", table.name, table.events[event].name);
                    let waits = waits(table, event as u8);
                    line(
                        text,
                        &format!(
                            "\t\t:: {full}_raised && !({waits}) -> lower({full}); {full}_on()"
                        ),
                    );
                }
            }
        }
        line(text, "\t\t:: else -> break\n\t\tod\n\t   }\n\tod\n}");
    }
}

fn line(text: &mut String, words: &str) {
    text.push_str(words);
    text.push('\n');
}

fn signals(table: &Table) -> impl Iterator<Item = &'static str> {
    let pairs = table.events.iter().zip(table.classes);
    pairs
        .filter(|(_, class)| **class == Class::Signal)
        .map(|(event, _)| event.name)
}

fn external(table: &Table) -> Vec<u8> {
    (0..table.events.len() as u8)
        .filter(|event| table.classes[usize::from(*event)] == Class::External)
        .collect()
}

/// The states in which an event has to wait, as an expression.
fn waits(table: &Table, event: u8) -> String {
    let states: Vec<String> = (0..table.states.len() as u8)
        .filter(|state| table.defers(*state, event))
        .map(|state| at(table, state))
        .collect();
    if states.is_empty() {
        "false".to_owned()
    } else {
        states.join(" || ")
    }
}

fn at(table: &Table, state: u8) -> String {
    format!(
        "{}_state == {}_{}",
        table.name,
        table.name,
        table.states[usize::from(state)].name
    )
}

/// The rows of an event. Conditions are looked at before anything is done.
fn transitions(text: &mut String, table: &Table, event: u8) {
    let name = table.name;
    let event_name = table.events[usize::from(event)].name;
    line(text, &format!("inline {name}_{event_name}_on() {{\n\tif"));
    for state in 0..table.states.len() as u8 {
        if table.defers(state, event) {
            continue;
        }
        let here = at(table, state);
        let (first, count) = table.span(state, event);
        if count == 0 {
            line(
                text,
                &format!(
                    "\t:: {here} -> printf(\"impossible {name} {event_name}\\n\"); assert(false)"
                ),
            );
            continue;
        }
        line(text, &format!("\t:: {here} ->\n\t\tif"));
        for number in first..first + count {
            let row = &table.rows[number];
            let action = table.actions[usize::from(row.action)].name;
            let to = table.states[usize::from(row.to)].name;
            line(
                text,
                &format!(
                    "\t\t:: ({}) -> printf(\"row {name} {number}\\n\");\n\
                     \t\t\t{name}_state = {name}_{to};\n\t\t\t{name}_do_{action}()",
                    conditions(table, row.mask, row.value)
                ),
            );
        }
        line(text, "\t\tfi");
    }
    line(text, "\tfi\n}");
}

fn conditions(table: &Table, mask: u8, value: u8) -> String {
    let terms: Vec<String> = table
        .conditions
        .iter()
        .enumerate()
        .filter(|(bit, _)| mask >> bit & 1 == 1)
        .map(|(bit, condition)| {
            let not = if value >> bit & 1 == 1 { "" } else { "!" };
            format!("{not}({}_{})", table.name, condition.name)
        })
        .collect();
    if terms.is_empty() {
        "true".to_owned()
    } else {
        terms.join(" && ")
    }
}
