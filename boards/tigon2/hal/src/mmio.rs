//! The chip itself as a [`Bus`].

use crate::Bus;
use crate::assist::{ReadChannel, WriteChannel};
use crate::events::{Core, Dispatch};
use core::cell::UnsafeCell;
use tigon2_chip::{Cpu, Register};

/// Volatile access by the running CPU. Zero-sized, so handlers that are generic over [`Bus`]
/// compile to plain loads and stores.
///
/// The SRAM methods are for NIC addresses outside of Rust's own variables: gencom, rings,
/// descriptors and packet buffers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mmio(());

impl Mmio {
    /// The bus of the running CPU.
    ///
    /// # Safety
    /// The caller promises to use the bus only for addresses that hold no Rust variables
    /// (the memory map of the image keeps them apart) and only aligned ones, and to
    /// [`call`](Dispatch::call) only what is code.
    pub const unsafe fn new() -> Mmio {
        Mmio(())
    }

    /// Reads the word of SRAM that holds a NIC address.
    #[inline(always)]
    pub fn peek(address: u32) -> u32 {
        const SRAM: u32 = tigon2_chip::memory::SRAM_MAX_BYTES - 4;
        // SAFETY: aligned and within SRAM or an alias of it, where a load has no effect
        // (reference 2).
        unsafe { core::ptr::read_volatile((address & SRAM) as *const u32) }
    }
}

impl Bus for Mmio {
    #[inline(always)]
    fn read(&mut self, register: Register) -> u32 {
        // SAFETY: a register's address is valid and aligned on this CPU (reference 2).
        unsafe { core::ptr::read_volatile(register.address() as *const u32) }
    }

    #[inline(always)]
    fn write(&mut self, register: Register, value: u32) {
        // SAFETY: as for `read`.
        unsafe { core::ptr::write_volatile(register.address() as *mut u32, value) }
    }

    #[inline(always)]
    fn load(&mut self, address: u32) -> u32 {
        // SAFETY: the promise of `Mmio::new`.
        unsafe { core::ptr::read_volatile(address as *const u32) }
    }

    #[inline(always)]
    fn store(&mut self, address: u32, value: u32) {
        // SAFETY: the promise of `Mmio::new`.
        unsafe { core::ptr::write_volatile(address as *mut u32, value) }
    }

    #[inline(always)]
    fn load_half(&mut self, address: u32) -> u16 {
        // SAFETY: the promise of `Mmio::new`.
        unsafe { core::ptr::read_volatile(address as *const u16) }
    }

    #[inline(always)]
    fn store_half(&mut self, address: u32, value: u16) {
        // SAFETY: the promise of `Mmio::new`.
        unsafe { core::ptr::write_volatile(address as *mut u16, value) }
    }

    #[inline(always)]
    fn load_byte(&mut self, address: u32) -> u8 {
        // SAFETY: the promise of `Mmio::new`.
        unsafe { core::ptr::read_volatile(address as *const u8) }
    }

    #[inline(always)]
    fn store_byte(&mut self, address: u32, value: u8) {
        // SAFETY: the promise of `Mmio::new`.
        unsafe { core::ptr::write_volatile(address as *mut u8, value) }
    }
}

struct PrivateCore(UnsafeCell<Core>);

// SAFETY: it lies in the scratch pads, so each CPU has its own; nothing interrupts code, and
// a reference lives only as long as the closure of `core`, which no handler nests.
unsafe impl Sync for PrivateCore {}

/// The core of the running CPU: the linker script gives it the same address in both scratch pads,
/// and [`Mmio::begin`] its value.
#[unsafe(link_section = ".core")]
#[unsafe(export_name = "_core")]
static CORE: PrivateCore = PrivateCore(UnsafeCell::new(Core::new(Cpu::A, true)));

impl Mmio {
    /// Sets the running CPU's core; call it before anything else.
    pub fn begin(cpu: Cpu, alone: bool) {
        // SAFETY: nobody uses it yet; see `PrivateCore`.
        unsafe { CORE.0.get().write(Core::new(cpu, alone)) };
    }
}

impl Dispatch for Mmio {
    type ReadChannel = ReadChannel;
    type WriteChannel = WriteChannel;

    #[inline(always)]
    fn core<R>(&mut self, use_it: impl FnOnce(&mut Core) -> R) -> R {
        // SAFETY: see `PrivateCore`.
        use_it(unsafe { &mut *CORE.0.get() })
    }

    #[inline(always)]
    fn call(&mut self, entry: u32, argument: u32) -> u32 {
        // SAFETY: an address, which is not null; that it is one of code is the promise of
        // `Mmio::new`.
        let function: extern "C" fn(u32) -> u32 =
            unsafe { core::mem::transmute::<usize, extern "C" fn(u32) -> u32>(entry as usize) };
        function(argument)
    }
}
