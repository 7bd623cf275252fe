//! Tables for readers: a diagram of each machine and a list of its rows.

use frame_pipeline::{Class, TABLES, Table};
use std::fmt::Write;

/// What stands before and behind the part of a page that is made here.
pub const MARKS: [&str; 2] = [
    "<!-- made by cargo xtask verify --pages -->",
    "<!-- end -->",
];

/// The part of the page that is made from the tables.
pub fn page() -> String {
    let mut text = String::new();
    for table in TABLES {
        let _ = write!(text, "\n### {}\n\n```mermaid\n", table.name);
        text.push_str(&diagram(table));
        text.push_str("```\n\n");
        text.push_str(&rows(table));
    }
    text
}

/// A page with its made part replaced; `None` if it has no place for it.
pub fn replace(page: &str, made: &str) -> Option<String> {
    let (head, rest) = page.split_once(MARKS[0])?;
    let (_, tail) = rest.split_once(MARKS[1])?;
    Some(format!("{head}{}\n{made}\n{}{tail}", MARKS[0], MARKS[1]))
}

/// A machine as a diagram in Mermaid's language: an edge for each way from state to state, with
/// the events that lead there.
pub fn diagram(table: &Table) -> String {
    let mut text = String::from("stateDiagram-v2\n");
    let _ = writeln!(text, "    [*] --> {}", table.states[0].name);
    for (from, state) in table.states.iter().enumerate() {
        for (to, next) in table.states.iter().enumerate() {
            let rows = table.rows.iter();
            let way = rows.filter(|row| usize::from(row.from) == from && usize::from(row.to) == to);
            let labels: Vec<String> = way
                .map(|row| {
                    let conditions = conditions(table, row.mask, row.value);
                    let event = table.events[usize::from(row.event)].name;
                    if conditions.is_empty() {
                        event.to_owned()
                    } else {
                        format!("{event} [{conditions}]")
                    }
                })
                .collect();
            if !labels.is_empty() {
                let label = labels.join(", ");
                let _ = writeln!(text, "    {} --> {}: {label}", state.name, next.name);
            }
        }
    }
    text
}

/// A machine's rows as a table.
pub fn rows(table: &Table) -> String {
    let mut text = String::from("| state | event | if | action | next |\n|---|---|---|---|---|\n");
    for row in table.rows {
        let event = usize::from(row.event);
        let sign = match table.classes[event] {
            Class::External => "",
            Class::Signal => " (signal)",
        };
        let action = &table.actions[usize::from(row.action)];
        let _ = writeln!(
            text,
            "| {} | {}{sign} | {} | {} | {} |",
            table.states[usize::from(row.from)].name,
            table.events[event].name,
            conditions(table, row.mask, row.value),
            action.text.trim().trim_end_matches('.'),
            table.states[usize::from(row.to)].name,
        );
    }
    text
}

fn conditions(table: &Table, mask: u8, value: u8) -> String {
    let bits = table.conditions.iter().enumerate();
    let terms: Vec<String> = bits
        .filter(|(bit, _)| mask >> bit & 1 == 1)
        .map(|(bit, condition)| {
            let not = if value >> bit & 1 == 1 { "" } else { "not " };
            format!("{not}{}", condition.name)
        })
        .collect();
    terms.join(" and ")
}
