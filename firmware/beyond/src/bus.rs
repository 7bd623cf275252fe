//! The chip's bus for a group of CPUs, with channels whose descriptors several of them fill.

use crate::channel::Ordered;
use tigon2_chip::Register;
use tigon2_hal::Bus;
use tigon2_hal::assist::{ReadChannel, WriteChannel};
use tigon2_hal::events::{Core, Dispatch};

/// One CPU's bus.
#[derive(Clone, Copy, Debug)]
pub struct Shared<B>(pub B);

impl<B: Bus> Bus for Shared<B> {
    #[inline(always)]
    fn read(&mut self, register: Register) -> u32 {
        self.0.read(register)
    }
    #[inline(always)]
    fn write(&mut self, register: Register, value: u32) {
        self.0.write(register, value);
    }
    #[inline(always)]
    fn load(&mut self, address: u32) -> u32 {
        self.0.load(address)
    }
    #[inline(always)]
    fn store(&mut self, address: u32, value: u32) {
        self.0.store(address, value);
    }
    #[inline(always)]
    fn load_half(&mut self, address: u32) -> u16 {
        self.0.load_half(address)
    }
    #[inline(always)]
    fn store_half(&mut self, address: u32, value: u16) {
        self.0.store_half(address, value);
    }
    #[inline(always)]
    fn load_byte(&mut self, address: u32) -> u8 {
        self.0.load_byte(address)
    }
    #[inline(always)]
    fn store_byte(&mut self, address: u32, value: u8) {
        self.0.store_byte(address, value);
    }
}

impl<B: Dispatch> Dispatch for Shared<B> {
    type ReadChannel = Ordered<ReadChannel>;
    type WriteChannel = Ordered<WriteChannel>;

    #[inline(always)]
    fn core<R>(&mut self, use_it: impl FnOnce(&mut Core) -> R) -> R {
        self.0.core(use_it)
    }

    #[inline(always)]
    fn call(&mut self, entry: u32, argument: u32) -> u32 {
        self.0.call(entry, argument)
    }
}
