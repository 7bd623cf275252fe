//! Runs that are written by hand.

use super::Step;
use frame_pipeline::Table;
use frame_pipeline::table::Named;

/// The steps of a text's lines.
pub(super) fn steps(text: &str) -> Vec<Step> {
    text.lines()
        .map(|line| Step::of_line(line).unwrap_or_else(|| panic!("{line}")))
        .collect()
}

/// The line of the first row that does an action for an event in a state.
pub(super) fn row(table: &Table, from: &str, event: &str, action: &str) -> String {
    let named = |names: &[Named], number: u8| names[usize::from(number)].name;
    let number = table.rows.iter().position(|row| {
        named(table.states, row.from) == from
            && named(table.events, row.event) == event
            && named(table.actions, row.action) == action
    });
    format!("row {} {}", table.name, number.expect("a row"))
}
