//! The host's accesses: BAR 0 and configuration space.

use super::Card;
use crate::environment::Environment;
use crate::undefined::{Accessor, UndefinedKind};
use crate::window::Target;
use tigon2_chip::mailbox::{self, Mailbox};
use tigon2_chip::memory::DIRECT_BYTES;

impl Card {
    pub(crate) fn bar_read(&mut self, env: &mut Environment<'_>, offset: u32) -> u32 {
        let offset = self.aligned(offset, 0);
        let value = match self.window.target(&self.host_control, offset) {
            Target::Register(offset) => self.register_read(env, Accessor::Host, offset),
            Target::Direct(address) | Target::Window(address) => self.map.word(env.sram, address),
            Target::Nothing => {
                self.undefined
                    .note(Accessor::Host, UndefinedKind::Read, offset, 0);
                0
            }
        };
        self.host_order(value)
    }

    pub(crate) fn bar_write(&mut self, env: &mut Environment<'_>, offset: u32, value: u32) {
        let offset = self.aligned(offset, value);
        let value = self.host_order(value);
        match self.window.target(&self.host_control, offset) {
            Target::Register(offset) => self.register_write(env, Accessor::Host, offset, value),
            Target::Direct(address) => {
                self.map.set_word(env.sram, address, value);
                if let Some(number) = mailbox::number_at(address + DIRECT_BYTES) {
                    self.ring_mailbox(number);
                }
            }
            Target::Window(address) => self.map.set_word(env.sram, address, value),
            Target::Nothing => {
                self.undefined
                    .note(Accessor::Host, UndefinedKind::Write, offset, value);
            }
        }
    }

    pub(crate) fn config_read(&self, offset: usize, out: &mut [u8]) {
        self.pci.read(offset, out, self.interrupt.pending());
    }

    pub(crate) fn config_write(&mut self, _env: &mut Environment<'_>, offset: usize, data: &[u8]) {
        self.pci.write(offset, data);
        self.settle_interrupt();
    }

    fn aligned(&mut self, offset: u32, value: u32) -> u32 {
        if offset & 3 != 0 {
            self.undefined
                .note(Accessor::Host, UndefinedKind::Unaligned, offset, value);
        }
        offset & !3
    }

    /// `R[40]` bit 4 reverses the bytes of every access of the host (9, I).
    fn host_order(&self, value: u32) -> u32 {
        if self.host_control.byte_swap() {
            value.swap_bytes()
        } else {
            value
        }
    }

    fn ring_mailbox(&mut self, number: u32) {
        self.mailboxes.ring(number);
        if number == Mailbox::HostInterrupt.number() {
            self.interrupt.clear();
            self.settle_interrupt();
        }
    }
}
