//! The C interface between QEMU and this library.
//!
//! This module mirrors `qemu/overlay/tree/hw/mips/tigon2/ffi.h`, which documents each function and
//! the locks that are held. A test compares the names and the order of the fields in both.

use std::ffi::{c_char, c_void};

/// Version of this interface; QEMU's must be the same.
pub const ABI: u32 = 7;

/// CPUs of the card.
pub const CPUS: usize = 2;

/// Registers of the card, 32 bits each.
pub const REGISTERS: usize = 256;

/// No deadline, for [`HostOps::arm`].
pub const NEVER: i64 = i64::MAX;

/// Why a CPU stopped by itself.
pub mod fault {
    /// A `break` instruction.
    pub const BREAK: u32 = 0;
    /// An unaligned load or fetch.
    pub const ADDRESS_LOAD: u32 = 1;
    /// An unaligned store.
    pub const ADDRESS_STORE: u32 = 2;
    /// No memory where the program counter points.
    pub const FETCH: u32 = 3;
    /// No such instruction.
    pub const RESERVED: u32 = 4;
}

/// The options of the command line; null where one is missing.
#[repr(C)]
pub struct Config {
    /// Path of the vfio-user socket.
    pub socket: *const c_char,
    /// Board file.
    pub board: *const c_char,
    /// Image of the serial EEPROM.
    pub eeprom: *const c_char,
    /// MAC address, six bytes.
    pub mac: *const u8,
}

/// Sizes that the board file decides.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of SRAM.
    pub sram_bytes: u32,
    /// Bytes of each CPU's scratch pad.
    pub scratch_bytes: [u32; CPUS],
    /// Clock of the CPUs in Hz.
    pub core_hz: u32,
}

/// The card in QEMU, first argument of all [`HostOps`].
pub type CardHandle = *mut c_void;

/// What QEMU offers.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "ffi.h documents each function")]
pub struct HostOps {
    pub abi: u32,
    pub bytes: u32,
    pub card: CardHandle,
    pub now: unsafe extern "C" fn(CardHandle) -> i64,
    pub arm: unsafe extern "C" fn(CardHandle, i64),
    pub sram_read: unsafe extern "C" fn(CardHandle, u32, *mut c_void, u32),
    pub sram_write: unsafe extern "C" fn(CardHandle, u32, *const c_void, u32),
    pub scratch_read: unsafe extern "C" fn(CardHandle, u32, u32) -> u32,
    pub scratch_write: unsafe extern "C" fn(CardHandle, u32, u32, u32),
    pub spill: unsafe extern "C" fn(CardHandle, u32, u32),
    pub pc: unsafe extern "C" fn(CardHandle, u32) -> u32,
    pub gpr: unsafe extern "C" fn(CardHandle, u32, u32) -> u32,
    pub start: unsafe extern "C" fn(CardHandle, u32, u32),
    pub halt: unsafe extern "C" fn(CardHandle, u32),
    pub encoded: unsafe extern "C" fn(CardHandle, u32, *mut u32),
    pub settle: unsafe extern "C" fn(CardHandle),
    pub transmit: unsafe extern "C" fn(CardHandle, *const c_void, usize) -> bool,
    pub wire_ready: unsafe extern "C" fn(CardHandle),
    pub thread_begin: unsafe extern "C" fn(CardHandle),
    pub thread_end: unsafe extern "C" fn(CardHandle),
    pub locked: unsafe extern "C" fn(CardHandle) -> bool,
    pub lock: unsafe extern "C" fn(CardHandle),
    pub try_lock: unsafe extern "C" fn(CardHandle) -> bool,
    pub unlock: unsafe extern "C" fn(CardHandle),
    pub call_errands: unsafe extern "C" fn(CardHandle),
}

/// The model, first argument of all [`ModelOps`].
pub type ModelHandle = *mut c_void;

/// What this library offers.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "ffi.h documents each function")]
pub struct ModelOps {
    pub abi: u32,
    pub bytes: u32,
    pub begin: unsafe extern "C" fn(ModelHandle),
    pub end: unsafe extern "C" fn(ModelHandle),
    pub power_on: unsafe extern "C" fn(ModelHandle),
    pub errands: unsafe extern "C" fn(ModelHandle),
    pub exact: [u64; REGISTERS / 64],
    pub read: unsafe extern "C" fn(ModelHandle, u32, u32) -> u32,
    pub write: unsafe extern "C" fn(ModelHandle, u32, u32, u32),
    pub undefined: unsafe extern "C" fn(ModelHandle, u32, u32, u32, bool, u32),
    pub fault: unsafe extern "C" fn(ModelHandle, u32, u32, u32, u32),
    pub timer: unsafe extern "C" fn(ModelHandle),
    pub can_receive: unsafe extern "C" fn(ModelHandle) -> bool,
    pub receive: unsafe extern "C" fn(ModelHandle, *const u8, usize) -> bool,
    pub cable: unsafe extern "C" fn(ModelHandle, bool),
    pub wire_free: unsafe extern "C" fn(ModelHandle),
    pub lost: unsafe extern "C" fn(ModelHandle, i32),
    pub get: unsafe extern "C" fn(ModelHandle, *const c_char, *mut c_char, usize) -> bool,
    pub set:
        unsafe extern "C" fn(ModelHandle, *const c_char, *const c_char, *mut c_char, usize) -> bool,
}

#[cfg(test)]
mod tests {
    const HEADER: &str = include_str!("../overlay/tree/hw/mips/tigon2/ffi.h");
    const MIRROR: &str = include_str!("ffi.rs");

    /// Names of the members of a C structure, in their order.
    fn c_members(name: &str) -> Vec<String> {
        let body = HEADER
            .split_once(&format!("typedef struct {name} {{"))
            .and_then(|(_, rest)| rest.split_once(&format!("}} {name};")))
            .map(|(body, _)| body)
            .unwrap_or_default();
        let mut text = String::new();
        let mut rest = body;
        while let Some((code, comment)) = rest.split_once("/*") {
            text.push_str(code);
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        }
        text.push_str(rest);
        let member = |declaration: &str| {
            let name = match declaration.split_once("(*") {
                Some((_, function)) => function.split(')').next()?,
                None => declaration.split('[').next()?.rsplit([' ', '*']).next()?,
            };
            (!name.trim().is_empty()).then(|| name.trim().to_owned())
        };
        text.split(';').filter_map(|d| member(d.trim())).collect()
    }

    /// Names of the fields of a structure of this file, in their order.
    fn fields(name: &str) -> Vec<String> {
        let body = MIRROR
            .split_once(&format!("pub struct {name} {{"))
            .and_then(|(_, rest)| rest.split_once("\n}"))
            .map(|(body, _)| body)
            .unwrap_or_default();
        let field = |line: &str| {
            let (name, _) = line.trim().strip_prefix("pub ")?.split_once(':')?;
            Some(name.to_owned())
        };
        body.lines().filter_map(field).collect()
    }

    #[test]
    fn the_mirror_has_the_members_of_the_header() {
        for (c, rust) in [
            ("Tigon2Config", "Config"),
            ("Tigon2Geometry", "Geometry"),
            ("Tigon2HostOps", "HostOps"),
            ("Tigon2ModelOps", "ModelOps"),
        ] {
            let members = c_members(c);
            assert!(members.len() > 2, "{c} was found in the header");
            assert_eq!(members, fields(rust), "{c}");
        }
    }

    #[test]
    fn the_mirror_has_the_version_of_the_header() {
        let line = format!("#define TIGON2_ABI {}\n", super::ABI);
        assert!(HEADER.contains(&line));
    }
}
