//! The host's commands.
//!
//! Host/NIC software interface, "Commands": words in a ring in NIC memory, with the producer in
//! mailbox 1 and the consumer in gencom. A command stays in the ring while its answer finds no
//! room or CPU B still works on it; housekeeping tries it again.

use super::cross_call::{self, Call};
use super::{SideA, queues, statistics};
use crate::control::link::{self, Renew};
use crate::io::Busy;
use crate::io::buffer_ring::RingId;
use crate::io::filter;
use crate::memory::statistics::count;
use crate::path::receive;
use crate::record::log::{log_debug, log_info, log_warn};
use crate::record::trace;
use host_interface::command::{
    Command, CommandCode, DISABLE, ENABLE, NEGOTIATE_10_100, NEGOTIATE_BOTH, NEGOTIATE_GIGABIT,
    STACK_DOWN, STACK_UP, UnknownCommand,
};
use host_interface::event::{self, EventCode};
use host_interface::extension::{Extension, State};
use host_interface::gencom::Gencom;
use host_interface::queue::QueueCommand;
use host_interface::ring::{COMMAND_BYTES, COMMAND_ENTRIES, advance, used};
use host_interface::trace::Topic;
use tigon2_chip::mailbox::Mailbox;
use tigon2_chip::memory::COMMAND_RING;
use tigon2_hal::events::Dispatch;

/// Carries out the queued commands.
#[inline(never)]
pub fn run<B: Dispatch>(a: &mut SideA<B>) {
    loop {
        let producer = a.io.bus.load(Mailbox::CommandProducer.nic_address());
        let consumer = a.io.bus.load(Gencom::CommandConsumer.nic_address());
        if producer == consumer {
            return;
        }
        if producer >= COMMAND_ENTRIES || consumer >= COMMAND_ENTRIES {
            return refuse(a, producer);
        }
        let queued = used(producer, consumer, COMMAND_ENTRIES);
        let taken = match one(a, consumer, queued) {
            Ok(taken) => taken,
            Err(Busy) => return a.io.hasten(),
        };
        let next = advance(consumer, taken, COMMAND_ENTRIES);
        a.io.bus.store(Gencom::CommandConsumer.nic_address(), next);
    }
}

/// Whether commands wait.
pub fn waits<B: Dispatch>(a: &mut SideA<B>) -> bool {
    let producer = a.io.bus.load(Mailbox::CommandProducer.nic_address());
    producer != a.io.bus.load(Gencom::CommandConsumer.nic_address())
}

/// Reports an index outside of the ring once, and resets both indices to the same value.
fn refuse<B: Dispatch>(a: &mut SideA<B>, producer: u32) {
    log_warn!("command producer {=u32:#x} is out of range", producer);
    a.io.bus.store(Mailbox::CommandProducer.nic_address(), 0);
    a.io.bus.store(Gencom::CommandConsumer.nic_address(), 0);
    a.io.post_error(event::ERROR_INVALID_COMMAND);
}

fn word<B: Dispatch>(bus: &mut B, index: u32) -> u32 {
    bus.load(COMMAND_RING + advance(index, 0, COMMAND_ENTRIES) * COMMAND_BYTES)
}

/// Carries out the command at `index`, with up to `queued` valid entries from there on; returns
/// how many it took.
fn one<B: Dispatch>(a: &mut SideA<B>, index: u32, queued: u32) -> Result<u32, Busy> {
    let command = match Command::unpack(word(&mut a.io.bus, index)) {
        Ok(command) => command,
        Err(UnknownCommand(word)) => {
            if let Some(command) = QueueCommand::from_number((word >> 24) as u8) {
                let entries = 1 + command.extra_entries();
                queues::command(a, command)?;
                return Ok(entries.min(queued));
            }
            log_warn!("unknown command {=u32:#x}", word);
            count!(a.io.bus, command_unknown);
            a.io.post_error(event::ERROR_INVALID_COMMAND);
            return Ok(1);
        }
    };
    let entries = 1 + command.command.extra_entries();
    if entries > queued {
        // The address is missing.
        a.io.post_error(event::ERROR_INVALID_COMMAND);
        return Ok(queued);
    }
    call(a, command.command)?;
    let bus = &mut a.io.bus;
    let (high, low) = (word(bus, index + 1), word(bus, index + 2));
    let arguments = [word(bus, index), high, low, 0];
    trace::record(bus, Topic::Command, command.command as u32, arguments);
    log_debug!(
        "command {=u32:#x}, code {=u16:#x}",
        command.command as u32,
        command.code
    );
    carry_out(a, command, high, low)?;
    Ok(entries)
}

/// Calls CPU B first, for commands with a part on CPU B.
fn call<B: Dispatch>(a: &mut SideA<B>, command: CommandCode) -> Result<(), Busy> {
    let what = match command {
        CommandCode::UpdateStatistics
        | CommandCode::RefreshStatistics
        | CommandCode::ClearProfile => Call::Publish,
        CommandCode::ClearStatistics => Call::Clear,
        CommandCode::ResetJumboRing => {
            receive::freeze_jumbo(&mut a.receive, &mut a.io);
            Call::ResetJumbo
        }
        _ => return Ok(()),
    };
    cross_call::call(a, what)
}

/// What each command does: one function, with an arm for each.
fn carry_out<B: Dispatch>(
    a: &mut SideA<B>,
    command: Command,
    high: u32,
    low: u32,
) -> Result<(), Busy> {
    match command.command {
        CommandCode::HostState => {
            count!(a.io.bus, command_host_state);
            host_state(a, command.code);
        }
        CommandCode::UpdateStatistics => {
            count!(a.io.bus, command_update_statistics);
            statistics::update(a)?;
        }
        CommandCode::RefreshStatistics => {
            let place = a.config.refresh;
            let place = if place.is_null() {
                a.config.information
            } else {
                place
            };
            count!(a.io.bus, command_refresh_statistics);
            statistics::write_to(a, place)?;
        }
        CommandCode::ClearStatistics => {
            statistics::clear(a);
            count!(a.io.bus, command_clear_statistics);
        }
        CommandCode::ClearProfile => {
            count!(a.io.bus, command_clear_profile);
            statistics::clear_profile(a);
        }
        CommandCode::ResetJumboRing => {
            receive::reset_jumbo(&mut a.receive, &mut a.io)?;
            count!(a.io.bus, command_reset_jumbo_ring);
        }
        CommandCode::Promiscuous => {
            count!(a.io.bus, command_promiscuous);
            match switch(command.code) {
                Some(on) => {
                    a.io.filter.set_promiscuous(&mut a.io.bus, on);
                    statistics::describe(a);
                }
                None => invalid(a),
            }
        }
        CommandCode::AllMulticast => {
            count!(a.io.bus, command_all_multicast);
            match switch(command.code) {
                Some(on) => a.io.filter.set_all_multicast(&mut a.io.bus, on),
                None => invalid(a),
            }
        }
        CommandCode::AddMulticastExtended => multicast(a, true, high, low),
        CommandCode::DeleteMulticastExtended => multicast(a, false, high, low),
        CommandCode::AddMulticast | CommandCode::DeleteMulticast => {
            let high = a.io.bus.load(Gencom::MulticastHigh.nic_address());
            let low = a.io.bus.load(Gencom::MulticastLow.nic_address());
            multicast(a, command.command == CommandCode::AddMulticast, high, low);
        }
        CommandCode::SetMacAddress => {
            count!(a.io.bus, command_set_mac_address);
            filter::set_station(&mut a.io.bus);
            statistics::describe(a);
        }
        CommandCode::LinkNegotiation => {
            count!(a.io.bus, command_link_negotiation);
            match command.code {
                NEGOTIATE_BOTH => renew(a, Renew::Both),
                NEGOTIATE_GIGABIT => renew(a, Renew::Gigabit),
                NEGOTIATE_10_100 => renew(a, Renew::Fast),
                _ => invalid(a),
            }
        }
        CommandCode::SetStandardProducer => {
            count!(a.io.bus, command_set_standard_producer);
            let producer = command.index.into();
            receive::host_produced(&mut a.receive, &mut a.io, RingId::Standard, producer);
        }
        CommandCode::SetJumboProducer => {
            count!(a.io.bus, command_set_jumbo_producer);
            let producer = command.index.into();
            receive::host_produced(&mut a.receive, &mut a.io, RingId::Jumbo, producer);
        }
        CommandCode::FdrFiltering => {
            count!(a.io.bus, command_fdr_filtering);
            unimplemented(a);
        }
        CommandCode::SetPartialReceiveCount => unimplemented(a),
    }
    Ok(())
}

/// Restarts the link.
fn renew<B: Dispatch>(a: &mut SideA<B>, which: Renew) {
    link::renew(&mut a.link, &mut a.io, which);
    statistics::follow_link(a);
}

/// An invalid command, or one with an invalid code.
fn invalid<B: Dispatch>(a: &mut SideA<B>) {
    a.io.post_error(event::ERROR_INVALID_COMMAND);
}

/// A command of the interface that this firmware does not use.
fn unimplemented<B: Dispatch>(a: &mut SideA<B>) {
    a.io.post_error(event::ERROR_UNIMPLEMENTED_COMMAND);
}

/// On or off, if the code is either.
fn switch(code: u16) -> Option<bool> {
    match code {
        ENABLE => Some(true),
        DISABLE => Some(false),
        _ => None,
    }
}

fn host_state<B: Dispatch>(a: &mut SideA<B>, code: u16) {
    let state = match code {
        STACK_UP => State::StackUp,
        STACK_DOWN => State::Running,
        _ => return invalid(a),
    };
    log_info!("stack up: {=bool}", state == State::StackUp);
    receive::set_stack(&mut a.receive, &mut a.io, state == State::StackUp);
    a.io.bus.store(Extension::State.nic_address(), state as u32);
    statistics::describe(a);
}

fn multicast<B: Dispatch>(a: &mut SideA<B>, add: bool, high: u32, low: u32) {
    if add {
        count!(a.io.bus, command_add_multicast);
    } else {
        count!(a.io.bus, command_delete_multicast);
    }
    if !filter::is_multicast(high) {
        return invalid(a);
    }
    let filter = &mut a.io.filter;
    let code = if add {
        filter.add(&mut a.io.bus, high, low);
        event::MULTICAST_ADDED
    } else {
        filter.delete(&mut a.io.bus, high, low);
        event::MULTICAST_DELETED
    };
    count!(a.io.bus, event_multicast_updated);
    a.io.post(EventCode::MulticastUpdated, code);
}
