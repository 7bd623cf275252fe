//! The entry points that QEMU calls.
//!
//! A panic never reaches QEMU: it is reported, the card is halted, and every
//! later call returns at once.

use crate::entrance::Entrance;
use crate::exact::EXACT;
use crate::ffi::{ABI, Config, Geometry, HostOps, ModelHandle, ModelOps, fault};
use crate::host::Qemu;
use crate::machine::Machine;
use crate::properties::{self, PropertyError};
use crate::server::Socket;
use crate::setup::{self, Options, SetupError};
use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use thiserror::Error;
use tigon2_model::{Cpu, CpuFault};
use vfio_user_nic::BindError;

/// What a [`ModelHandle`] points to. It lives until the process ends.
struct Model {
    machine: Arc<Machine<Qemu>>,
    entrance: Entrance<Qemu>,
}

/// Why there is no model.
#[derive(Debug, Error)]
enum NoModel {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Socket(#[from] BindError),
}

/// Makes a model for QEMU's machine, as `ffi.h` describes.
///
/// # Safety
/// The arguments must be what `ffi.h` says: `host` and `config` valid for
/// reading, `ops` and `geometry` for writing, `message` for writing `bytes`
/// bytes. They are not used after the return, the functions in `host` are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tigon2_model_new(
    host: *const HostOps,
    config: *const Config,
    ops: *mut ModelOps,
    geometry: *mut Geometry,
    message: *mut c_char,
    bytes: usize,
) -> ModelHandle {
    // SAFETY: `message` is what `ffi.h` says.
    let message = unsafe { Message::new(message, bytes) };
    // SAFETY: every version of the interface starts with these two numbers.
    let (abi, size) = unsafe { ((*host).abi, (*host).bytes) };
    if abi != ABI || size as usize != size_of::<HostOps>() {
        message.set(&format!(
            "the hardware model is for ABI {ABI}, this machine for ABI {abi}"
        ));
        return std::ptr::null_mut();
    }
    // SAFETY: the version is right, so the whole structure is there, and QEMU
    // keeps its functions callable.
    let qemu = unsafe { Qemu::new(*host) };
    // SAFETY: `config` is what `ffi.h` says.
    let options = unsafe { options(&*config) };
    let made = catch_unwind(AssertUnwindSafe(|| Model::new(qemu, options)));
    match made {
        Ok(Ok((model, sizes))) => {
            // SAFETY: both may be written, says `ffi.h`.
            unsafe {
                ops.write(OPS);
                geometry.write(sizes);
            }
            Box::into_raw(Box::new(model)).cast()
        }
        Ok(Err(error)) => {
            message.set(&error.to_string());
            std::ptr::null_mut()
        }
        Err(_) => {
            message.set("the hardware model has failed");
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// Strings in `config` must be null or end with a zero, `mac` null or six bytes.
unsafe fn options(config: &Config) -> Options {
    let path = |text: *const c_char| {
        (!text.is_null()).then(|| {
            // SAFETY: not null, so it ends with a zero.
            let text = unsafe { CStr::from_ptr(text) };
            PathBuf::from(OsStr::from_bytes(text.to_bytes()))
        })
    };
    Options {
        socket: path(config.socket),
        board: path(config.board),
        eeprom: path(config.eeprom),
        // SAFETY: not null, so it has six bytes; bytes have no alignment.
        mac: (!config.mac.is_null()).then(|| unsafe { config.mac.cast::<[u8; 6]>().read() }),
    }
}

impl Model {
    fn new(qemu: Qemu, options: Options) -> Result<(Self, Geometry), NoModel> {
        let board = setup::board(options.board.as_deref())?;
        let geometry = Geometry {
            sram_bytes: board.memory.sram_bytes,
            scratch_bytes: [board.scratch_bytes(Cpu::A), board.scratch_bytes(Cpu::B)],
            core_hz: board.clock.core_hz,
        };
        let (card, eeprom) = setup::card(board, &options)?;
        let socket = options.socket.as_deref().map(Socket::bind).transpose()?;
        let client = socket.as_ref().map(Socket::client).unwrap_or_default();
        let machine = Machine::new(qemu, card, client);
        if let Some(file) = setup::operations()? {
            machine.record_operations(file);
        }
        let machine = Arc::new(machine);
        let entrance = Entrance::new(machine.clone(), Arc::new(Mutex::new(eeprom)), socket);
        Ok((Model { machine, entrance }, geometry))
    }
}

/// Runs `f` on the model unless it has failed; if it fails now, ends it.
///
/// # Safety
/// `handle` must come from [`tigon2_model_new`].
unsafe fn guarded<R>(handle: ModelHandle, otherwise: R, f: impl FnOnce(&Model) -> R) -> R {
    // SAFETY: it was made by `Box::into_raw` and is never given back; all
    // access is by shared reference.
    let model = unsafe { &*handle.cast::<Model>() };
    if model.machine.is_dead() {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(|| f(model))).unwrap_or_else(|_| {
        model.machine.die();
        otherwise
    })
}

/// QEMU numbers the CPUs as the chip crate does.
fn cpu(number: u32) -> Cpu {
    if number == Cpu::A as u32 {
        Cpu::A
    } else {
        Cpu::B
    }
}

/// Defines the C functions of [`ModelOps`]. Each gets the model that the handle
/// points to, and is QEMU's to call with arguments as `ffi.h` says.
macro_rules! callbacks {
    ($($name:ident($model:ident $(, $argument:ident: $type:ty)*) -> $result:ty [$otherwise:expr] $body:block)*) => {
        $(unsafe extern "C" fn $name(handle: ModelHandle $(, $argument: $type)*) -> $result {
            let body = |$model: &Model| $body;
            // SAFETY: QEMU passes the handle that it got.
            unsafe { guarded(handle, $otherwise, body) }
        })*
    };
}

callbacks! {
    begin(model) -> () [()] {
        model.entrance.begin();
    }
    end(model) -> () [()] {
        model.entrance.end();
    }
    power_on(model) -> () [()] {
        model.entrance.power_on();
    }
    read(model, number: u32, offset: u32) -> u32 [0] {
        model.machine.cpu_read(cpu(number), offset)
    }
    write(model, number: u32, offset: u32, value: u32) -> () [()] {
        model.machine.cpu_write(cpu(number), offset, value);
    }
    undefined(model, number: u32, address: u32, _size: u32, write: bool, value: u32) -> () [()] {
        model.machine.cpu_undefined(cpu(number), address, write.then_some(value));
    }
    fault(model, number: u32, kind: u32, pc: u32, address: u32) -> () [()] {
        let fault = match kind {
            fault::BREAK => CpuFault::Break,
            fault::ADDRESS_LOAD | fault::ADDRESS_STORE => CpuFault::Unaligned { address },
            fault::FETCH => CpuFault::BusError { address },
            fault::RESERVED => CpuFault::ReservedInstruction,
            other => CpuFault::Exception(other),
        };
        model.machine.cpu_fault(cpu(number), fault, pc);
    }
    timer(model) -> () [()] {
        model.machine.timer();
    }
    can_receive(model) -> bool [true] {
        model.machine.can_receive()
    }
    receive(model, frame: *const u8, length: usize) -> bool [true] {
        // SAFETY: QEMU passes a frame of this length, valid during the call.
        let frame = unsafe { std::slice::from_raw_parts(frame, length) };
        model.machine.receive(frame)
    }
    cable(model, plugged: bool) -> () [()] {
        model.machine.set_cable(plugged);
    }
    wire_free(model) -> () [()] {
        model.machine.wire_free();
    }
    lost(model, error: i32) -> () [()] {
        model.machine.lost(error);
    }
    get(model, name: *const c_char, text: *mut c_char, bytes: usize) -> bool [false] {
        // SAFETY: the strings are what `ffi.h` says.
        let (name, text) = unsafe { (string(name), Message::new(text, bytes)) };
        text.answer(properties::get(&model.machine, &name))
    }
    set(model, name: *const c_char, value: *const c_char, text: *mut c_char, bytes: usize) -> bool [false] {
        // SAFETY: the strings are what `ffi.h` says.
        let (name, value, text) = unsafe { (string(name), string(value), Message::new(text, bytes)) };
        text.answer(properties::set(&model.machine, &name, &value).map(|()| String::new()))
    }
}

/// Also of a model that has failed: that is how its CPUs are halted.
unsafe extern "C" fn errands(handle: ModelHandle) {
    // SAFETY: as in `guarded`.
    let model = unsafe { &*handle.cast::<Model>() };
    if catch_unwind(AssertUnwindSafe(|| model.entrance.errands())).is_err() {
        model.machine.die();
    }
}

/// # Safety
/// `text` must end with a zero and be valid during the call of [`callbacks`].
unsafe fn string<'a>(text: *const c_char) -> Cow<'a, str> {
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

const OPS: ModelOps = ModelOps {
    abi: ABI,
    bytes: size_of::<ModelOps>() as u32,
    begin,
    end,
    power_on,
    errands,
    exact: EXACT,
    read,
    write,
    undefined,
    fault,
    timer,
    can_receive,
    receive,
    cable,
    wire_free,
    lost,
    get,
    set,
};

/// QEMU's buffer for one line of text.
struct Message {
    text: *mut c_char,
    bytes: usize,
}

impl Message {
    /// # Safety
    /// `text` must be valid for writing `bytes` bytes while this is used.
    unsafe fn new(text: *mut c_char, bytes: usize) -> Self {
        Message { text, bytes }
    }

    /// Writes what came out; returns whether it is what was asked for.
    fn answer(&self, result: Result<String, PropertyError>) -> bool {
        match result {
            Ok(text) => {
                self.set(&text);
                true
            }
            Err(error) => {
                self.set(&error.to_string());
                false
            }
        }
    }

    /// Writes `line`, as much as fits, in one line and with a zero at its end.
    fn set(&self, line: &str) {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(room) = self.bytes.checked_sub(1) else {
            return;
        };
        let length = line.len().min(room);
        // SAFETY: `length` and the zero behind it are inside the buffer
        // (contract of `new`), which is QEMU's and so not part of `line`.
        unsafe {
            self.text
                .copy_from_nonoverlapping(line.as_ptr().cast(), length);
            self.text.add(length).write(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Message;
    use std::ffi::{CStr, c_char};

    fn written(line: &str, bytes: usize) -> String {
        let mut buffer = [b'x' as c_char; 32];
        // SAFETY: the buffer has 32 bytes, the tests name fewer.
        let message = unsafe { Message::new(buffer.as_mut_ptr(), bytes) };
        message.set(line);
        assert_eq!(
            buffer[bytes], b'x' as c_char,
            "nothing is written behind the end"
        );
        // SAFETY: `set` has ended the text with a zero.
        let text = unsafe { CStr::from_ptr(buffer.as_ptr()) };
        text.to_string_lossy().into_owned()
    }

    #[test]
    fn a_message_is_one_line_that_fits() {
        assert_eq!(written("no such\n  file", 31), "no such file");
        assert_eq!(written("0123456789", 6), "01234");
        assert_eq!(written("", 1), "");
    }
}
