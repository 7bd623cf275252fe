//! Commands of the host.
//!
//! Host/NIC software interface, "Commands": words in a ring in NIC memory, producer in
//! mailbox 1, consumer in gencom. A command that finds no room for its answer is left in
//! the ring; housekeeping comes back to it. So is one that CPU B has to do something for,
//! until that is done.

use crate::link::Renew;
use crate::log::{log_debug, log_info, log_warn};
use crate::question::{self, What};
use crate::receive::rings::Which;
use crate::statistics::count;
use crate::{SideA, filter, host_events, link, receive, statistics, trace};
use host_interface::command::{
    Command, CommandCode, DISABLE, ENABLE, NEGOTIATE_10_100, NEGOTIATE_BOTH, NEGOTIATE_GIGABIT,
    STACK_DOWN, STACK_UP, UnknownCommand,
};
use host_interface::event::{self, EventCode};
use host_interface::extension::{Extension, State};
use host_interface::gencom::Gencom;
use host_interface::ring::{COMMAND_BYTES, COMMAND_ENTRIES, advance, used};
use host_interface::trace::Topic;
use tigon2_chip::mailbox::Mailbox;
use tigon2_chip::memory::COMMAND_RING;
use tigon2_hal::assist::Full;
use tigon2_hal::events::Dispatch;

/// Carries out what the host queued.
#[inline(never)]
pub fn run<B: Dispatch>(a: &mut SideA<B>) {
    loop {
        let producer = a.bus.load(Mailbox::CommandProducer.nic_address());
        let consumer = a.bus.load(Gencom::CommandConsumer.nic_address());
        if producer == consumer {
            return;
        }
        if producer >= COMMAND_ENTRIES || consumer >= COMMAND_ENTRIES {
            return refuse(a, producer);
        }
        let queued = used(producer, consumer, COMMAND_ENTRIES);
        let taken = match one(a, consumer, queued) {
            Ok(taken) => taken,
            Err(Full) => return,
        };
        let next = advance(consumer, taken, COMMAND_ENTRIES);
        a.bus.store(Gencom::CommandConsumer.nic_address(), next);
    }
}

/// An index outside of the ring: reported once, and both are set to agree.
fn refuse<B: Dispatch>(a: &mut SideA<B>, producer: u32) {
    log_warn!("command producer {=u32:#x} is out of range", producer);
    a.bus.store(Mailbox::CommandProducer.nic_address(), 0);
    a.bus.store(Gencom::CommandConsumer.nic_address(), 0);
    host_events::post_error(a, event::ERROR_INVALID_COMMAND);
}

fn word<B: Dispatch>(bus: &mut B, index: u32) -> u32 {
    bus.load(COMMAND_RING + advance(index, 0, COMMAND_ENTRIES) * COMMAND_BYTES)
}

/// Carries out the command at `index`, behind which up to `queued` entries are valid;
/// returns how many it took.
fn one<B: Dispatch>(a: &mut SideA<B>, index: u32, queued: u32) -> Result<u32, Full> {
    let command = match Command::unpack(word(&mut a.bus, index)) {
        Ok(command) => command,
        Err(UnknownCommand(word)) => {
            log_warn!("unknown command {=u32:#x}", word);
            count!(a, command_unknown);
            host_events::post_error(a, event::ERROR_INVALID_COMMAND);
            return Ok(1);
        }
    };
    let entries = 1 + command.command.extra_entries();
    if entries > queued {
        // The address is missing.
        host_events::post_error(a, event::ERROR_INVALID_COMMAND);
        return Ok(queued);
    }
    ask(a, command.command)?;
    let bus = &mut a.bus;
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

/// Has CPU B do its part first, where it has one.
fn ask<B: Dispatch>(a: &mut SideA<B>, command: CommandCode) -> Result<(), Full> {
    let what = match command {
        CommandCode::UpdateStatistics
        | CommandCode::RefreshStatistics
        | CommandCode::ClearProfile => What::Publish,
        CommandCode::ClearStatistics => What::Clear,
        CommandCode::ResetJumboRing => {
            receive::freeze_jumbo(a);
            What::ResetJumbo
        }
        _ => return Ok(()),
    };
    question::ask(a, what)
}

fn carry_out<B: Dispatch>(
    a: &mut SideA<B>,
    command: Command,
    high: u32,
    low: u32,
) -> Result<(), Full> {
    match command.command {
        CommandCode::HostState => {
            count!(a, command_host_state);
            host_state(a, command.code);
        }
        CommandCode::UpdateStatistics => {
            count!(a, command_update_statistics);
            statistics::update(a)?;
        }
        CommandCode::RefreshStatistics => {
            let place = a.config.refresh;
            let place = if place.is_none() {
                a.config.information
            } else {
                place
            };
            count!(a, command_refresh_statistics);
            statistics::write_to(a, place)?;
        }
        CommandCode::ClearStatistics => {
            statistics::clear(a);
            count!(a, command_clear_statistics);
        }
        CommandCode::ClearProfile => {
            count!(a, command_clear_profile);
            statistics::clear_profile(a);
        }
        CommandCode::ResetJumboRing => {
            receive::reset_jumbo(a)?;
            count!(a, command_reset_jumbo_ring);
        }
        CommandCode::Promiscuous => {
            count!(a, command_promiscuous);
            match switch(command.code) {
                Some(on) => {
                    a.link.filter.set_promiscuous(&mut a.bus, on);
                    statistics::describe(a);
                }
                None => invalid(a),
            }
        }
        CommandCode::AllMulticast => {
            count!(a, command_all_multicast);
            match switch(command.code) {
                Some(on) => a.link.filter.set_all_multicast(&mut a.bus, on),
                None => invalid(a),
            }
        }
        CommandCode::AddMulticastExtended => multicast(a, true, high, low),
        CommandCode::DeleteMulticastExtended => multicast(a, false, high, low),
        CommandCode::AddMulticast | CommandCode::DeleteMulticast => {
            let high = a.bus.load(Gencom::MulticastHigh.nic_address());
            let low = a.bus.load(Gencom::MulticastLow.nic_address());
            multicast(a, command.command == CommandCode::AddMulticast, high, low);
        }
        CommandCode::SetMacAddress => {
            count!(a, command_set_mac_address);
            filter::set_station(&mut a.bus);
            statistics::describe(a);
        }
        CommandCode::LinkNegotiation => {
            count!(a, command_link_negotiation);
            match command.code {
                NEGOTIATE_BOTH => link::renew(a, Renew::Both),
                NEGOTIATE_GIGABIT => link::renew(a, Renew::Gigabit),
                NEGOTIATE_10_100 => link::renew(a, Renew::Fast),
                _ => invalid(a),
            }
        }
        CommandCode::SetStandardProducer => {
            count!(a, command_set_standard_producer);
            receive::host_produced(a, Which::Standard, command.index.into());
        }
        CommandCode::SetJumboProducer => {
            count!(a, command_set_jumbo_producer);
            receive::host_produced(a, Which::Jumbo, command.index.into());
        }
        CommandCode::FdrFiltering => {
            count!(a, command_fdr_filtering);
            unimplemented(a);
        }
        CommandCode::SetPartialReceiveCount => unimplemented(a),
    }
    Ok(())
}

/// A command that means nothing, or whose code does.
fn invalid<B: Dispatch>(a: &mut SideA<B>) {
    host_events::post_error(a, event::ERROR_INVALID_COMMAND);
}

/// A command of the interface that this firmware has no use for.
fn unimplemented<B: Dispatch>(a: &mut SideA<B>) {
    host_events::post_error(a, event::ERROR_UNIMPLEMENTED_COMMAND);
}

/// On or off, if the code says either.
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
    receive::set_stack(a, state == State::StackUp);
    a.bus.store(Extension::State.nic_address(), state as u32);
    statistics::describe(a);
}

fn multicast<B: Dispatch>(a: &mut SideA<B>, add: bool, high: u32, low: u32) {
    if add {
        count!(a, command_add_multicast);
    } else {
        count!(a, command_delete_multicast);
    }
    if !filter::is_multicast(high) {
        return invalid(a);
    }
    let filter = &mut a.link.filter;
    let code = if add {
        filter.add(&mut a.bus, high, low);
        event::MULTICAST_ADDED
    } else {
        filter.delete(&mut a.bus, high, low);
        event::MULTICAST_DELETED
    };
    count!(a, event_multicast_updated);
    host_events::post(a, EventCode::MulticastUpdated, code);
}
