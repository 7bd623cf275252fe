//! Commands of the host.
//!
//! Host/NIC software interface, "Commands": words in a ring in NIC memory, producer in
//! mailbox 1, consumer in gencom. A command that finds no room for its answer is left in
//! the ring; housekeeping comes back to it.

use crate::link::Renew;
use crate::log::{log_info, log_warn};
use crate::receive::rings::Which;
use crate::statistics::count;
use crate::{Firmware, filter, host_events, link, receive, statistics, trace};
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
use tigon2_hal::Bus;
use tigon2_hal::assist::Full;

/// Carries out what the host queued.
#[inline(never)]
pub fn run<B: Bus>(firmware: &mut Firmware<B>) {
    loop {
        let producer = firmware.bus.load(Mailbox::CommandProducer.nic_address());
        let consumer = firmware.bus.load(Gencom::CommandConsumer.nic_address());
        if producer == consumer {
            return;
        }
        if producer >= COMMAND_ENTRIES || consumer >= COMMAND_ENTRIES {
            return refuse(firmware, producer);
        }
        let queued = used(producer, consumer, COMMAND_ENTRIES);
        let taken = match one(firmware, consumer, queued) {
            Ok(taken) => taken,
            Err(Full) => return,
        };
        let next = advance(consumer, taken, COMMAND_ENTRIES);
        firmware
            .bus
            .store(Gencom::CommandConsumer.nic_address(), next);
    }
}

/// An index outside of the ring: reported once, and both are set to agree.
fn refuse<B: Bus>(firmware: &mut Firmware<B>, producer: u32) {
    log_warn!("command producer {=u32:#x} is out of range", producer);
    firmware
        .bus
        .store(Mailbox::CommandProducer.nic_address(), 0);
    firmware.bus.store(Gencom::CommandConsumer.nic_address(), 0);
    host_events::post_error(firmware, event::ERROR_INVALID_COMMAND);
}

fn word<B: Bus>(bus: &mut B, index: u32) -> u32 {
    bus.load(COMMAND_RING + advance(index, 0, COMMAND_ENTRIES) * COMMAND_BYTES)
}

/// Carries out the command at `index`, behind which up to `queued` entries are valid;
/// returns how many it took.
fn one<B: Bus>(firmware: &mut Firmware<B>, index: u32, queued: u32) -> Result<u32, Full> {
    let command = match Command::unpack(word(&mut firmware.bus, index)) {
        Ok(command) => command,
        Err(UnknownCommand(word)) => {
            log_warn!("unknown command {=u32:#x}", word);
            count!(firmware, command_unknown);
            host_events::post_error(firmware, event::ERROR_INVALID_COMMAND);
            return Ok(1);
        }
    };
    let entries = 1 + command.command.extra_entries();
    if entries > queued {
        // The address is missing.
        host_events::post_error(firmware, event::ERROR_INVALID_COMMAND);
        return Ok(queued);
    }
    let bus = &mut firmware.bus;
    let (high, low) = (word(bus, index + 1), word(bus, index + 2));
    let arguments = [word(bus, index), high, low, 0];
    trace::record(bus, Topic::Command, command.command as u32, arguments);
    carry_out(firmware, command, high, low)?;
    Ok(entries)
}

fn carry_out<B: Bus>(
    firmware: &mut Firmware<B>,
    command: Command,
    high: u32,
    low: u32,
) -> Result<(), Full> {
    match command.command {
        CommandCode::HostState => {
            count!(firmware, command_host_state);
            host_state(firmware, command.code);
        }
        CommandCode::UpdateStatistics => {
            count!(firmware, command_update_statistics);
            statistics::update(firmware)?;
        }
        CommandCode::RefreshStatistics => {
            let place = firmware.config.refresh;
            let place = if place.is_none() {
                firmware.config.information
            } else {
                place
            };
            count!(firmware, command_refresh_statistics);
            statistics::write_to(firmware, place)?;
        }
        CommandCode::ClearStatistics => {
            statistics::clear(firmware);
            count!(firmware, command_clear_statistics);
        }
        CommandCode::ClearProfile => {
            count!(firmware, command_clear_profile);
            statistics::clear_profile(firmware);
        }
        CommandCode::ResetJumboRing => {
            receive::reset_jumbo(firmware)?;
            count!(firmware, command_reset_jumbo_ring);
        }
        CommandCode::Promiscuous => {
            count!(firmware, command_promiscuous);
            match switch(command.code) {
                Some(on) => {
                    firmware.link.filter.set_promiscuous(&mut firmware.bus, on);
                    statistics::describe(firmware);
                }
                None => invalid(firmware),
            }
        }
        CommandCode::AllMulticast => {
            count!(firmware, command_all_multicast);
            match switch(command.code) {
                Some(on) => firmware
                    .link
                    .filter
                    .set_all_multicast(&mut firmware.bus, on),
                None => invalid(firmware),
            }
        }
        CommandCode::AddMulticastExtended => multicast(firmware, true, high, low),
        CommandCode::DeleteMulticastExtended => multicast(firmware, false, high, low),
        CommandCode::AddMulticast | CommandCode::DeleteMulticast => {
            let high = firmware.bus.load(Gencom::MulticastHigh.nic_address());
            let low = firmware.bus.load(Gencom::MulticastLow.nic_address());
            multicast(
                firmware,
                command.command == CommandCode::AddMulticast,
                high,
                low,
            );
        }
        CommandCode::SetMacAddress => {
            count!(firmware, command_set_mac_address);
            filter::set_station(&mut firmware.bus);
            statistics::describe(firmware);
        }
        CommandCode::LinkNegotiation => {
            count!(firmware, command_link_negotiation);
            match command.code {
                NEGOTIATE_BOTH => link::renew(firmware, Renew::Both),
                NEGOTIATE_GIGABIT => link::renew(firmware, Renew::Gigabit),
                NEGOTIATE_10_100 => link::renew(firmware, Renew::Fast),
                _ => invalid(firmware),
            }
        }
        CommandCode::SetStandardProducer => {
            count!(firmware, command_set_standard_producer);
            receive::host_produced(firmware, Which::Standard, command.index.into());
        }
        CommandCode::SetJumboProducer => {
            count!(firmware, command_set_jumbo_producer);
            receive::host_produced(firmware, Which::Jumbo, command.index.into());
        }
        CommandCode::FdrFiltering => {
            count!(firmware, command_fdr_filtering);
            unimplemented(firmware);
        }
        CommandCode::SetPartialReceiveCount => unimplemented(firmware),
    }
    Ok(())
}

/// A command that means nothing, or whose code does.
fn invalid<B: Bus>(firmware: &mut Firmware<B>) {
    host_events::post_error(firmware, event::ERROR_INVALID_COMMAND);
}

/// A command of the interface that this firmware has no use for.
fn unimplemented<B: Bus>(firmware: &mut Firmware<B>) {
    host_events::post_error(firmware, event::ERROR_UNIMPLEMENTED_COMMAND);
}

/// On or off, if the code says either.
fn switch(code: u16) -> Option<bool> {
    match code {
        ENABLE => Some(true),
        DISABLE => Some(false),
        _ => None,
    }
}

fn host_state<B: Bus>(firmware: &mut Firmware<B>, code: u16) {
    let state = match code {
        STACK_UP => State::StackUp,
        STACK_DOWN => State::Running,
        _ => return invalid(firmware),
    };
    log_info!("stack up: {=bool}", state == State::StackUp);
    receive::set_stack(firmware, state == State::StackUp);
    firmware
        .bus
        .store(Extension::State.nic_address(), state as u32);
    statistics::describe(firmware);
}

fn multicast<B: Bus>(firmware: &mut Firmware<B>, add: bool, high: u32, low: u32) {
    if add {
        count!(firmware, command_add_multicast);
    } else {
        count!(firmware, command_delete_multicast);
    }
    if !filter::is_multicast(high) {
        return invalid(firmware);
    }
    let filter = &mut firmware.link.filter;
    let code = if add {
        filter.add(&mut firmware.bus, high, low);
        event::MULTICAST_ADDED
    } else {
        filter.delete(&mut firmware.bus, high, low);
        event::MULTICAST_DELETED
    };
    count!(firmware, event_multicast_updated);
    host_events::post(firmware, EventCode::MulticastUpdated, code);
}
