//! Tests that the documentation shows the tables in the firmware's sources.

use tigon_firmware::events::{HANDLERS, LATER};
use tigon_firmware::memory::shared;

#[test]
fn the_event_table_of_the_documentation_is_the_firmwares() {
    let page = include_str!("../../../docs/firmware.md");
    let shown: Vec<_> = page
        .lines()
        .skip_while(|line| !line.starts_with("| bit |"))
        .skip(2)
        .take_while(|line| line.starts_with("| "))
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

#[test]
fn the_table_of_what_comes_later_is_the_firmwares() {
    let page = include_str!("../../../docs/firmware.md");
    let shown: Vec<_> = page
        .lines()
        .skip_while(|line| !line.starts_with("| bit | event | CPU | entry | row |"))
        .skip(2)
        .take_while(|line| line.starts_with("| "))
        .collect();
    let expected: Vec<_> = LATER
        .iter()
        .rev()
        .map(|later| {
            let (bit, event) = (later.event.number(), later.event.name());
            format!(
                "| {bit} | {event} | {} | `{}` | {} | {} |",
                later.cpu, later.name, later.row, later.summary
            )
        })
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn the_table_of_what_crosses_is_the_firmwares() {
    let page = include_str!("../../../docs/firmware.md");
    let shown: Vec<_> = page
        .lines()
        .skip_while(|line| !line.starts_with("| word |"))
        .skip(2)
        .take_while(|line| line.starts_with("| `"))
        .collect();
    let expected: Vec<_> = shared::ALL
        .iter()
        .map(|(name, writer, words, why)| {
            let writer = writer.trim_start_matches("Of");
            format!("| `{name}` | {writer} | {words} | {why} |")
        })
        .collect();
    assert_eq!(shown, expected);
}

/// Paper, section 4.2: which CPU has which event of its Table 1.
#[test]
fn the_partition_is_the_papers() {
    use tigon2_chip::Cpu;
    use tigon2_chip::events::EventBit as Event;
    for (event, cpu) in [
        (Event::Mailbox, Cpu::A),
        (Event::DmaWriteComplete, Cpu::A),
        (Event::ReceiveComplete, Cpu::A),
        (Event::UpdateReceiveReturnProducer, Cpu::A),
        (Event::DmaReadComplete, Cpu::B),
        (Event::SendBdReady, Cpu::B),
        (Event::SendDataReady, Cpu::B),
        (Event::StandardReceiveBdReady, Cpu::B),
        (Event::UpdateSendConsumer, Cpu::B),
    ] {
        let mut handlers = HANDLERS.iter().filter(|handler| handler.event == event);
        assert_eq!(handlers.next().map(|handler| handler.cpu), Some(cpu));
        assert!(handlers.next().is_none(), "{event:?} on one CPU");
    }
    let crossing = shared::ALL
        .iter()
        .filter(|(.., why)| why.starts_with("Packet path"));
    assert_eq!(crossing.count(), 3);
}
