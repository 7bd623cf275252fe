//! Frames arrive from the wire while firmware stops and starts the receiver. All frames that the
//! card refuses must arrive once it has room.

use crate::qemu::Qemu;
use shuttle::thread;
use tigon2_chip::registers::Register;
use tigon2_model::Cpu;

const FRAMES: usize = 2;
/// Enabled, sends pause frames.
const TRANSMITTER: u32 = 0x1E2;
const ON: u32 = 0x1_8802;
const STOPPED: u32 = ON | 4;

pub fn frames_that_were_refused_arrive() {
    let machine = Qemu::machine();
    let set = |register: Register, value| machine.cpu_write(Cpu::A, register.offset(), value);
    for register in [Register::RxBase, Register::RxProducer, Register::RxConsumer] {
        set(register, 0x18_0000);
    }
    set(Register::MacTxState, TRANSMITTER);
    set(Register::MacRxState, ON);
    let firmware = {
        let machine = machine.clone();
        thread::spawn(move || {
            for state in [STOPPED, ON, STOPPED, ON] {
                machine.cpu_write(Cpu::A, Register::MacRxState.offset(), state);
            }
        })
    };
    let qemu = machine.host();
    for _ in 0..FRAMES {
        qemu.with_lock(|| qemu.send(&[0xFF; 60]));
    }
    // Who waits in vain here waits for ever, which the checker reports.
    while qemu.taken() < FRAMES {
        qemu.turn();
    }
    firmware.join().expect("no panic");
}
