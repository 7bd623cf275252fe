//! `tigonctl regs`: prints registers by unit of the chip.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use tigon2_chip::registers::Register;

use super::cli::Arguments;
use super::look::Source;
use super::output::Output;

/// A unit of the chip, in the order of the hardware reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    CpuA,
    CpuB,
    Semaphores,
    Events,
    Dma,
    DmaAssist,
    Timers,
    Mailboxes,
    Control,
    MacRings,
    Mac,
}

impl Unit {
    const ALL: [Unit; 11] = [
        Unit::CpuA,
        Unit::CpuB,
        Unit::Semaphores,
        Unit::Events,
        Unit::Dma,
        Unit::DmaAssist,
        Unit::Timers,
        Unit::Mailboxes,
        Unit::Control,
        Unit::MacRings,
        Unit::Mac,
    ];

    /// Its name, also on the command line, and its section of the reference.
    const fn name(self) -> (&'static str, &'static str) {
        match self {
            Unit::CpuA => ("CPU A", "2, 3.4"),
            Unit::CpuB => ("CPU B", "2, 3.4"),
            Unit::Semaphores => ("semaphores", "4"),
            Unit::Events => ("events", "5"),
            Unit::Dma => ("DMA channels", "6.1, 6.5"),
            Unit::DmaAssist => ("DMA assist", "6.2, 6.3"),
            Unit::Timers => ("timers", "7"),
            Unit::Mailboxes => ("mailboxes", "8"),
            Unit::Control => ("control", "9"),
            Unit::MacRings => ("MAC buffers and rings", "10.1"),
            Unit::Mac => ("MAC", "10.4"),
        }
    }

    /// The unit of a register, by the section that describes it.
    const fn of(register: Register) -> Self {
        use Register as R;
        match register {
            R::CpuAState
            | R::CpuAPc
            | R::SpillBaseA
            | R::ScratchAddressA
            | R::ScratchDataA
            | R::CpuAGpr0 => Unit::CpuA,
            R::CpuBState
            | R::CpuBPc
            | R::SpillBaseB
            | R::ScratchAddressB
            | R::ScratchDataB
            | R::CpuBGpr0 => Unit::CpuB,
            R::SemaphoreA | R::SemaphoreB => Unit::Semaphores,
            R::EventA | R::EventB => Unit::Events,
            R::DmaWriteHostHigh
            | R::DmaWriteHostLow
            | R::DmaReadHostHigh
            | R::DmaReadHostLow
            | R::DmaReadLength
            | R::DmaWriteState
            | R::DmaWriteLocal
            | R::DmaWriteChecksum
            | R::DmaWriteLength
            | R::DmaReadState
            | R::DmaReadLocal
            | R::DmaReadChecksum => Unit::Dma,
            R::AssistReadProducer
            | R::AssistReadConsumer
            | R::AssistReadReference
            | R::AssistReadNextFree
            | R::AssistRead110
            | R::AssistRead114
            | R::AssistRead118
            | R::AssistState
            | R::AssistWriteProducer
            | R::AssistWriteConsumer
            | R::AssistWriteReference
            | R::AssistWriteNextFree
            | R::AssistWrite130
            | R::AssistWrite134
            | R::AssistWrite138 => Unit::DmaAssist,
            R::Timer | R::TimerReferenceA | R::TimerReferenceB => Unit::Timers,
            R::MailboxEventA | R::MailboxEventB => Unit::Mailboxes,
            R::MiscHostControl
            | R::MiscLocalControl
            | R::MiscConfig
            | R::PciState
            | R::WindowBase
            | R::WindowData
            | R::Serial
            | R::UnknownEc
            | R::Unknown23c => Unit::Control,
            R::RxBase
            | R::RxProducer
            | R::RxConsumer
            | R::TxBase
            | R::TxProducer
            | R::TxConsumer
            | R::RxDescriptorProducer
            | R::RxDescriptorConsumer
            | R::RxDescriptorReference
            | R::TxDescriptorProducer
            | R::TxDescriptorConsumer
            | R::TxDescriptorReference
            | R::TxDescriptorNextFree => Unit::MacRings,
            R::MacTxState
            | R::TxConfigWord
            | R::StationAddressHigh
            | R::StationAddressLow
            | R::BackoffSeed
            | R::TxLengths
            | R::MacThresholds
            | R::MacRxState
            | R::RxConfigWord
            | R::MulticastHash0
            | R::MulticastHash1
            | R::MulticastHash2
            | R::MulticastHash3
            | R::PhyInterface => Unit::Mac,
        }
    }
}

/// The registers of each unit: all, those of the unit with this name, or those with these words in
/// their names.
fn chosen(filter: &str) -> BTreeMap<Unit, Vec<Register>> {
    let unit = Unit::ALL
        .into_iter()
        .find(|unit| unit.name().0.eq_ignore_ascii_case(filter));
    let part = filter.to_ascii_lowercase();
    let mut units: BTreeMap<Unit, Vec<Register>> = BTreeMap::new();
    for register in Register::ALL {
        let of = Unit::of(*register);
        let wanted = match unit {
            Some(unit) => unit == of,
            None => register.name().to_ascii_lowercase().contains(&part),
        };
        if wanted {
            units.entry(of).or_default().push(*register);
        }
    }
    units
}

/// `tigonctl regs`
pub fn regs(arguments: &Arguments, filter: Option<&str>, output: &Output) -> Result<()> {
    let filter = filter.unwrap_or_default();
    let units = chosen(filter);
    if units.is_empty() {
        let names = Unit::ALL.map(|unit| unit.name().0).join(", ");
        bail!("no register's name has {filter} in it, nor is it a unit ({names})");
    }
    let offsets = units.values().flatten().map(|register| register.offset());
    let words = Source::open(arguments)?.registers(&offsets.collect::<Vec<_>>())?;
    let mut words = words.into_iter();
    let mut object = Map::new();
    let mut lines = Vec::new();
    for (unit, registers) in &units {
        let (name, section) = unit.name();
        let sections = if section.contains(',') {
            "sections"
        } else {
            "section"
        };
        lines.push(format!("{name} ({sections} {section}):"));
        for (register, word) in registers.iter().zip(&mut words) {
            object.insert(register.name().to_owned(), word.into());
            let (offset, name) = (register.offset(), register.name());
            let access = register.access().name();
            lines.push(format!(
                "     {offset:03x} {access:<3} {name:<24} {word:#010x}"
            ));
        }
    }
    output.result("registers", Value::Object(object), &lines.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_is_in_the_unit_of_its_section() {
        let units = chosen("");
        assert_eq!(units.len(), Unit::ALL.len());
        let count: usize = units.values().map(Vec::len).sum();
        assert_eq!(count, Register::ALL.len());
        assert!(units.keys().is_sorted());
        assert_eq!(units[&Unit::Events], [Register::EventA, Register::EventB]);
        assert_eq!(units[&Unit::Timers].len(), 3);
    }

    #[test]
    fn a_unit_or_a_part_of_a_name_chooses() {
        let mac = chosen("mac");
        assert_eq!(mac.keys().collect::<Vec<_>>(), [&Unit::Mac]);
        assert_eq!(mac[&Unit::Mac].len(), 14);
        let event = chosen("event");
        let events = event.keys().collect::<Vec<_>>();
        assert_eq!(events, [&Unit::Events, &Unit::Mailboxes], "no unit's name");
        assert!(chosen("cable").is_empty());
    }
}
