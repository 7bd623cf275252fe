//! A card with the firmware's handlers in this process, as a driver reaches it.
//!
//! ```text
//!   driver ── Transport ──► registers, window, ┌───────┐     ┌──────────┐
//!                           mailboxes          │ model │◄───►│ handlers │
//!   DmaMemory ◄─────────── DMA ───────────────►└───────┘ Bus └──────────┘
//! ```
//!
//! When the driver starts CPU A the handlers boot, whatever image was loaded; when CPU A is halted
//! they are gone. Writes are posted: the handlers run at the next read and while the driver waits,
//! until none has anything to do.

use super::is_parallel;
use super::model_bus::{Code, ModelBus, Stores};
use host_driver::{DmaMemory, Transport, TransportError, Vector};
use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tigon_firmware::memory::region::Regions;
use tigon_firmware::{SideA, SideB, boot, events};
use tigon2_chip::{Cpu, Register};
use tigon2_hal::Bus;
use tigon2_hal::events::{Core, Dispatch};
use tigon2_hal::resources::Resources;
use tigon2_model::testing::HOST_BASE;
use tigon2_model::{Board, Effect};
use tigon2_sim::memory::HostMemories;

/// The model with what a driver has allocated as its host memory.
pub type Bench = tigon2_model::testing::Bench<HostMemories>;

/// Distance between two memories of the driver, so that overruns are caught.
const GAP: u64 = 0x1_0000;

/// What passes between two looks of a driver that waits, in nanoseconds.
const STEP: u64 = 10_000;

/// The handlers, on one CPU or on two.
pub struct Handlers {
    pub a: SideA<ModelBus>,
    pub b: SideB<ModelBus>,
    alone: bool,
}

/// The card.
pub struct NativeCard {
    bench: Rc<RefCell<Bench>>,
    code: Rc<RefCell<BTreeMap<u32, Code>>>,
    stores: Rc<RefCell<Stores>>,
    handlers: Option<Handlers>,
    /// Frames that have left the card.
    pub wire: Vec<Vec<u8>>,
    /// How often the interrupt line was asserted.
    pub interrupts: u32,
    masked: bool,
    next_iova: u64,
}

impl Handlers {
    /// Boots on the model.
    fn boot(
        bench: &Rc<RefCell<Bench>>,
        code: &Rc<RefCell<BTreeMap<u32, Code>>>,
        stores: &Rc<RefCell<Stores>>,
    ) -> Handlers {
        let alone = !is_parallel();
        let bus = |cpu| {
            let core = Rc::new(RefCell::new(Core::new(cpu, alone)));
            ModelBus(bench.clone(), core, code.clone(), stores.clone())
        };
        let mut cpu_a = bus(Cpu::A);
        let cpu_b = if alone { cpu_a.clone() } else { bus(Cpu::B) };
        let block = boot::claim(&mut cpu_a);
        let chip = Resources::of_chip();
        let regions = Regions::of_sram();
        let multicast = Box::leak(Box::default());
        let mut a = SideA::new(cpu_a, chip.write, chip.receiver, regions.a, multicast);
        let mut b = SideB::new(cpu_b, chip.read, chip.transmitter, regions.b);
        boot::run(&mut a, block, |bus| {
            if !alone {
                boot::start_cpu_b(bus, 0);
            }
            boot::join(&mut b);
        });
        Handlers { a, b, alone }
    }

    /// Runs a handler on each CPU; whether any ran.
    fn dispatch(&mut self) -> bool {
        if self.alone {
            return events::dispatch_both(&mut self.a, &mut self.b);
        }
        let a = events::dispatch_a(&mut self.a);
        let halted = self.a.io.bus.0.borrow().card.inspect().halted(Cpu::B);
        (!halted && events::dispatch_b(&mut self.b)) | a
    }
}

impl NativeCard {
    /// A powered card of a board whose CPUs are halted.
    pub fn new(board: Board) -> NativeCard {
        NativeCard {
            bench: Rc::new(RefCell::new(Bench::with_host(
                board,
                HostMemories::default(),
            ))),
            code: Rc::default(),
            stores: Rc::default(),
            handlers: None,
            wire: Vec::new(),
            interrupts: 0,
            masked: false,
            next_iova: HOST_BASE,
        }
    }

    /// The model; nothing runs on it meanwhile.
    pub fn bench(&self) -> RefMut<'_, Bench> {
        self.bench.borrow_mut()
    }

    /// CPU A's side of the handlers.
    ///
    /// # Panics
    /// While CPU A is halted.
    pub fn a(&mut self) -> &mut SideA<ModelBus> {
        &mut self.handlers.as_mut().expect("CPU A runs").a
    }

    /// Puts code at an address, for handlers that are loaded at run time.
    pub fn load_code(&mut self, entry: u32, code: Code) {
        self.code.borrow_mut().insert(entry, code);
    }

    /// Collects what is stored to a word of SRAM from now on; returns what was before.
    pub fn watch(&self, address: u32) -> Vec<u32> {
        let values = Vec::new();
        self.stores.replace(Stores { address, values }).values
    }

    /// Whether the firmware has stopped, by a fatal error or because CPU A is halted.
    pub fn is_stopped(&mut self) -> bool {
        let handlers = self.handlers.as_mut();
        handlers.is_none_or(|handlers| handlers.a.io.bus.core(|core| core.is_stopped()))
    }

    /// Runs handlers until none has anything to do. Takes the effects.
    pub fn settle(&mut self) {
        if self.bench.borrow().card.inspect().halted(Cpu::A) {
            self.handlers = None;
            self.effects();
            return;
        }
        let boot = || Handlers::boot(&self.bench, &self.code, &self.stores);
        let handlers = self.handlers.get_or_insert_with(boot);
        for _ in 0..100_000 {
            if !handlers.dispatch() {
                self.effects();
                return;
            }
        }
        let pending = [&mut handlers.a.io.bus, &mut handlers.b.io.bus]
            .map(|cpu| (cpu.core(|core| core.mask), cpu.read(Register::EventA)));
        panic!("the firmware does not come to rest: {pending:x?}");
    }

    /// Lets microseconds pass, with the handlers running.
    pub fn pass(&mut self, microseconds: u64) {
        for _ in 0..microseconds.div_ceil(STEP / 1000) {
            self.bench.borrow_mut().pass(STEP);
            self.settle();
        }
    }

    fn effects(&mut self) {
        let effects = self.bench.borrow_mut().effects();
        for effect in effects {
            match effect {
                Effect::Transmit(frame) => self.wire.push(frame),
                Effect::Interrupt(true) => self.interrupts += 1,
                _ => {}
            }
        }
    }
}

/// The offset, if it is a word of BAR 0.
fn word(offset: u32) -> Result<u32, TransportError> {
    if offset.is_multiple_of(4) && offset < 0x4000 {
        Ok(offset)
    } else {
        Err(TransportError::BadOffset(offset))
    }
}

impl Transport for NativeCard {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        let offset = word(bar_offset)?;
        self.settle();
        Ok(self.bench.borrow_mut().bar_read(offset))
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        let offset = word(bar_offset)?;
        self.bench.borrow_mut().bar_write(offset, value);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.settle();
        Ok(())
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        let mut bytes = [0; 4];
        let bench = self.bench.borrow();
        bench
            .card
            .inspect()
            .config_read(offset as usize, &mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        let bytes = value.to_le_bytes();
        let mut bench = self.bench.borrow_mut();
        bench.with(|card, env| card.device(env).config_write(offset as usize, &bytes));
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        let memory = DmaMemory::new(bytes, self.next_iova)?;
        self.next_iova += memory.len() as u64 + GAP;
        self.bench.borrow_mut().host.map(memory.clone());
        Ok(memory)
    }

    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        vector.must_be_pin()?;
        let end = self.bench.borrow().now + timeout.as_nanos() as u64;
        self.settle();
        loop {
            let asserted = self.bench.borrow().card.inspect().interrupt_level();
            if asserted && !self.masked {
                self.masked = true;
                return Ok(true);
            }
            if self.bench.borrow().now >= end {
                return Ok(false);
            }
            self.pass(STEP / 1000);
        }
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        vector.must_be_pin()?;
        self.masked = false;
        Ok(())
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        self.handlers = None;
        self.masked = false;
        self.bench
            .borrow_mut()
            .with(|card, env| card.device(env).power_on());
        self.effects();
        Ok(())
    }
}
