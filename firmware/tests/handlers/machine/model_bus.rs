//! A CPU's bus made of the hardware model: handlers that run natively see the card by it.

use std::cell::RefCell;
use std::rc::Rc;
use tigon2_chip::Register;
use tigon2_hal::Bus;
use tigon2_hal::assist::{ReadChannel, WriteChannel};
use tigon2_hal::events::{Core, Dispatch};
use tigon2_model::testing::Bench;

/// Time that one register access of a CPU takes here, in nanoseconds.
const ACCESS: u64 = 100;

/// A CPU: the model's bench as its bus, shared with the driver, and what is pending there.
#[derive(Clone)]
pub struct ModelBus(pub Rc<RefCell<Bench>>, pub Rc<RefCell<Core>>);

impl Dispatch for ModelBus {
    type ReadChannel = ReadChannel;
    type WriteChannel = WriteChannel;

    fn core<R>(&mut self, use_it: impl FnOnce(&mut Core) -> R) -> R {
        use_it(&mut self.1.borrow_mut())
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
