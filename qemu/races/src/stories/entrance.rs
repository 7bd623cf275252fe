//! A client connects while the machine is still being created. The register value of its first
//! access must still be there when the machine is complete.

use crate::glue::entrance::Entrance;
use crate::qemu::Qemu;
use crate::server::Socket;
use shuttle::sync::{Arc, Mutex};
use tigon2_chip::registers::Register;

const VALUE: u32 = 0x4000;

pub fn first_accesses_stay() {
    let machine = Qemu::machine_off();
    let socket = Socket {
        offset: Register::WindowBase.offset(),
        value: VALUE,
    };
    let eeprom = Arc::new(Mutex::new(None));
    let entrance = Entrance::new(machine.clone(), eeprom, Some(socket));
    let qemu = machine.host();
    qemu.with_lock(|| entrance.power_on());
    qemu.with_lock(|| entrance.begin());
    qemu.with_lock(|| entrance.power_on());
    qemu.with_lock(|| entrance.errands());
    entrance.end();
    let kept = machine.bar_read(Register::WindowBase.offset());
    assert_eq!(kept, VALUE, "what the client did is lost");
}
