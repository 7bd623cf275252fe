//! The documentation shows the table that the firmware is made of.

use tigon_firmware::events::HANDLERS;

#[test]
fn the_event_table_of_the_documentation_is_the_firmwares() {
    let page = include_str!("../../../docs/firmware.md");
    let shown: Vec<_> = page
        .lines()
        .filter(|line| line.matches("| `").count() == 1)
        .collect();
    let expected: Vec<_> = HANDLERS
        .iter()
        .rev()
        .map(|handler| {
            let (bit, event) = (handler.event.number(), handler.event.name());
            format!(
                "| {bit} | {event} | {} | `{}` | {} |",
                handler.cpu, handler.name, handler.summary
            )
        })
        .collect();
    assert_eq!(shown, expected);
}
