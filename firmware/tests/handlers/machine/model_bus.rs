//! A CPU's bus on the hardware model: native handlers access the card through it.

use super::Bench;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tigon2_chip::Register;
use tigon2_hal::Bus;
use tigon2_hal::assist::{ReadChannel, WriteChannel};
use tigon2_hal::events::{Core, Dispatch};

/// Time that one register access of a CPU takes here, in nanoseconds.
const ACCESS: u64 = 100;

/// What code at an address does: the stand-in of a function that was loaded into NIC memory.
pub type Code = fn(&mut ModelBus, u32) -> u32;

/// A CPU: the model's bench as its bus, shared with the driver, what is pending there, and
/// what was loaded.
#[derive(Clone)]
pub struct ModelBus(
    pub Rc<RefCell<Bench>>,
    pub Rc<RefCell<Core>>,
    pub Rc<RefCell<BTreeMap<u32, Code>>>,
    pub Rc<RefCell<Stores>>,
);

/// The values that were stored to one address of SRAM.
#[derive(Default)]
pub struct Stores {
    pub address: u32,
    pub values: Vec<u32>,
}

impl Dispatch for ModelBus {
    type ReadChannel = ReadChannel;
    type WriteChannel = WriteChannel;

    fn core<R>(&mut self, use_it: impl FnOnce(&mut Core) -> R) -> R {
        use_it(&mut self.1.borrow_mut())
    }

    fn call(&mut self, entry: u32, argument: u32) -> u32 {
        let code = self.2.borrow().get(&entry).copied();
        code.unwrap_or_else(|| panic!("no code at {entry:#x}"))(self, argument)
    }
}

impl Bus for ModelBus {
    fn read(&mut self, register: Register) -> u32 {
        let mut bench = self.0.borrow_mut();
        bench.pass(ACCESS);
        bench.run();
        bench.read(register)
    }

    fn write(&mut self, register: Register, value: u32) {
        let mut bench = self.0.borrow_mut();
        bench.pass(ACCESS);
        bench.write(register, value);
        bench.run();
    }

    fn load(&mut self, address: u32) -> u32 {
        assert_eq!(address % 4, 0, "unaligned word at {address:#x}");
        self.0.borrow().word(address)
    }

    fn store(&mut self, address: u32, value: u32) {
        assert_eq!(address % 4, 0, "unaligned word at {address:#x}");
        self.0.borrow_mut().set_word(address, value);
        let mut stores = self.3.borrow_mut();
        if stores.address == address {
            stores.values.push(value);
        }
    }

    fn load_half(&mut self, address: u32) -> u16 {
        assert_eq!(address % 2, 0, "unaligned halfword at {address:#x}");
        let bytes = self.0.borrow().bytes(address, 2);
        u16::from_be_bytes([bytes[0], bytes[1]])
    }

    fn store_half(&mut self, address: u32, value: u16) {
        assert_eq!(address % 2, 0, "unaligned halfword at {address:#x}");
        self.0.borrow_mut().set_bytes(address, &value.to_be_bytes());
    }

    fn load_byte(&mut self, address: u32) -> u8 {
        self.0.borrow().bytes(address, 1)[0]
    }

    fn store_byte(&mut self, address: u32, value: u8) {
        self.0.borrow_mut().set_bytes(address, &[value]);
    }
}
