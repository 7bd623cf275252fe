//! The chapter of all numbered items, generated from the tables that the code uses.

use host_interface::command::CommandCode;
use host_interface::event::EventCode;
use host_interface::extension::Extension;
use host_interface::gencom::Gencom;
use std::fmt::Write;
use tigon2_chip::events::EventBit;
use tigon2_chip::mailbox::Mailbox;
use tigon2_chip::{Access, Register};

/// One row: the number as the table shows it, the name, the access, the documentation.
type Row = (String, &'static str, Option<Access>, &'static str);

/// The chapter.
pub fn page() -> String {
    let registers = Register::ALL.iter().map(|one| {
        let number = format!("0x{:03x}", one.offset());
        (number, one.name(), Some(one.access()), one.summary())
    });
    let bits = EventBit::ALL.iter().rev().map(|one| {
        let number = one.number().to_string();
        (number, one.name(), Some(one.access()), one.summary())
    });
    let mailboxes = Mailbox::ALL
        .iter()
        .map(|one| (one.number().to_string(), one.name(), None, one.summary()));
    let gencom = Gencom::ALL.iter().map(|one| {
        let number = format!("0x{:03x}", one.bar_offset());
        (number, one.name(), Some(one.access()), one.summary())
    });
    let extension = Extension::ALL.iter().map(|one| {
        let number = format!("0x{:03x}", one.bar_offset());
        (number, one.name(), Some(one.access()), one.summary())
    });
    let commands = CommandCode::ALL.iter().map(|one| {
        let number = format!("0x{:02x}", one.number());
        (number, one.name(), None, one.summary())
    });
    let events = EventCode::ALL.iter().map(|one| {
        let number = format!("0x{:02x}", one.number());
        (number, one.name(), None, one.summary())
    });
    let mut page = String::from(
        "# Registers, words, commands\n\nMade by `cargo xtask doc` from the tables in \
         `boards/tigon2/chip` and `firmware/abi`, which firmware, model, driver, `tigonctl` and \
         gdb's commands share. R: read only; RW: read and write; W1C: write 1 to clear. Numbers in \
         brackets are sections of the hardware reference.\n",
    );
    section(&mut page, "Registers of the chip", "offset", registers);
    let title = "Bits of the event registers, the most urgent first";
    section(&mut page, title, "bit", bits);
    section(&mut page, "Mailboxes", "number", mailboxes);
    let title = "General communication words, as the host sees them";
    section(&mut page, title, "BAR", gencom);
    let title = "This project's words, as the host sees them";
    section(&mut page, title, "BAR", extension);
    section(&mut page, "Commands of the host", "command", commands);
    section(&mut page, "Events for the host", "event", events);
    page
}

fn section(page: &mut String, title: &str, number: &str, rows: impl Iterator<Item = Row>) {
    let _ = write!(
        page,
        "\n## {title}\n\n| {number} | name | access | what |\n"
    );
    page.push_str("| --- | --- | --- | --- |\n");
    for (number, name, access, summary) in rows {
        let access = access.map_or("", Access::name);
        let what = plain(without_number(summary));
        let _ = writeln!(page, "| {number} | `{name}` | {access} | {what} |");
    }
}

/// The documentation without the number that it begins with.
fn without_number(summary: &str) -> &str {
    for begins in ["0x", "BAR 0x", "bit "] {
        if let Some(rest) = summary.strip_prefix(begins) {
            let number = rest.find(' ').unwrap_or(rest.len());
            return rest.split_at(number).1.trim_start();
        }
    }
    match summary.split_once(": ") {
        Some((number, rest)) if number.parse::<u32>().is_ok() => rest,
        _ => summary,
    }
}

/// Rustdoc's links as the words that they show.
fn plain(summary: &str) -> String {
    let mut shown = String::new();
    let mut rest = summary;
    while let Some((before, link)) = rest.split_once('[') {
        let (words, behind) = link.split_once(']').unwrap_or((link, ""));
        shown.push_str(before);
        if before.ends_with('R') || before.ends_with("`R") {
            // A register in the reference's way of writing: R[60].
            let _ = write!(shown, "[{words}]");
        } else {
            shown.push_str(&words.replace("crate::", ""));
        }
        rest = match behind.strip_prefix('(') {
            Some(target) => target.split_once(')').map_or("", |(_, behind)| behind),
            None => behind,
        };
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_in_the_chapter() {
        let page = page();
        for row in [
            "| 0x064 | `MailboxEventA` | W1C | Mailbox bits of CPU A, write 1 to clear (8). |",
            "| 0x10c | `AssistReadNextFree` | R | DMA read ring: next free descriptor, 0 when full (6.3). |",
            "| 25 | `MacRxAttention` | R | hardware: an attention bit of `R[220]` is set (C). |",
            "| 2 | `SendProducer` |  | send ring producer index. |",
            "| 0x618 | `OperatingMode` | RW | `OperatingMode`. |",
            "| 0x6a8 | `State` | RW | `State` of the firmware. |",
            "| 0x6c0 | `CustomCounters` | R | NIC address of the firmware's custom counters, 0 if there are none. |",
            "| 0x0a | `Promiscuous` |  | promiscuous mode: `ENABLE`, `DISABLE`. |",
            "| 0x06 | `LinkState` |  | the link changed: `LINK_GIGABIT_UP`, `LINK_DOWN`, `LINK_10_100_UP`. |",
        ] {
            assert!(page.lines().any(|line| line == row), "{row}\n{page}");
        }
        let rows = page.lines().filter(|line| line.contains("| `")).count();
        let all = Register::ALL.len() + EventBit::ALL.len() + Mailbox::ALL.len();
        let words = Gencom::ALL.len() + Extension::ALL.len();
        assert_eq!(
            rows,
            all + words + CommandCode::ALL.len() + EventCode::ALL.len()
        );
    }
}
