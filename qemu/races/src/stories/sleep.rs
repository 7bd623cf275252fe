//! A CPU polls its event register and sleeps; the host and the other CPU raise events. Sleeps do
//! not time out here, so a lost wake-up leaves the CPU asleep.

use crate::qemu::Qemu;
use shuttle::thread;
use tigon2_chip::events::EventBit;
use tigon2_chip::registers::Register;
use tigon2_model::Cpu;

const MAILBOX: u32 = 0x504 + 8;
const SOFTWARE: u32 = 1 << 23;

pub fn every_event_wakes() {
    let machine = Qemu::machine();
    let host = {
        let machine = machine.clone();
        thread::spawn(move || {
            machine.bar_write(MAILBOX, 1);
            machine.host_done();
        })
    };
    let other = {
        let machine = machine.clone();
        thread::spawn(move || machine.cpu_write(Cpu::B, Register::EventA.offset(), SOFTWARE))
    };
    let both = EventBit::Mailbox.mask() | SOFTWARE;
    let mut seen = 0;
    while seen != both {
        let found = machine.cpu_read(Cpu::A, Register::EventA.offset()) & both & !seen;
        seen |= found;
        // Handled: what stays on would keep the CPU awake.
        if found & EventBit::Mailbox.mask() != 0 {
            machine.cpu_write(Cpu::A, Register::MailboxEventA.offset(), u32::MAX);
        }
        if found & SOFTWARE != 0 {
            machine.cpu_write(Cpu::A, Register::EventA.offset(), 0);
        }
    }
    host.join().expect("no panic");
    other.join().expect("no panic");
}
