//! The C interface between QEMU and this library.
//!
//! This module mirrors `qemu/overlay/tree/hw/net/tigon2/client.h`, which documents each function.
//! A test compares the names and the order of the fields in both.

use std::ffi::{c_char, c_int, c_void};

/// Version of this interface; QEMU's must be the same.
pub const ABI: u32 = 2;

/// Bytes of configuration space.
pub const CONFIG_BYTES: usize = 256;

/// What the command line says.
#[repr(C)]
pub struct Config {
    /// Path of the vfio-user socket.
    pub socket: *const c_char,
    /// How long a request may take.
    pub timeout_ms: u32,
}

/// What the card is like when it is first looked at.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// Bytes of BAR 0.
    pub bar_bytes: u64,
    /// Configuration space.
    pub config: [u8; CONFIG_BYTES],
}

/// The device in QEMU, first argument of all [`HostOps`].
pub type DeviceHandle = *mut c_void;

/// What QEMU offers.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "client.h documents each function")]
pub struct HostOps {
    pub abi: u32,
    pub bytes: u32,
    pub device: DeviceHandle,
    pub dma_read: unsafe extern "C" fn(DeviceHandle, u64, *mut c_void, u32) -> bool,
    pub dma_write: unsafe extern "C" fn(DeviceHandle, u64, *const c_void, u32) -> bool,
    pub gone: unsafe extern "C" fn(DeviceHandle, *const c_char),
    pub refused: unsafe extern "C" fn(DeviceHandle, *const c_char),
}

/// The client, first argument of all [`ClientOps`].
pub type ClientHandle = *mut c_void;

/// What this library offers.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "client.h documents each function")]
pub struct ClientOps {
    pub abi: u32,
    pub bytes: u32,
    pub close: unsafe extern "C" fn(ClientHandle),
    pub descriptor: unsafe extern "C" fn(ClientHandle) -> c_int,
    pub serve: unsafe extern "C" fn(ClientHandle),
    pub config_read: unsafe extern "C" fn(ClientHandle, u32, *mut c_void, u32) -> bool,
    pub config_write: unsafe extern "C" fn(ClientHandle, u32, *const c_void, u32),
    pub bar_read: unsafe extern "C" fn(ClientHandle, u64, *mut c_void, u32, bool) -> bool,
    pub bar_write: unsafe extern "C" fn(ClientHandle, u64, *const c_void, u32, bool),
    pub map: unsafe extern "C" fn(ClientHandle, u64, u64, bool, c_int, u64) -> bool,
    pub unmap: unsafe extern "C" fn(ClientHandle, u64, u64) -> bool,
    pub connect: unsafe extern "C" fn(ClientHandle, c_int) -> bool,
    pub reset: unsafe extern "C" fn(ClientHandle) -> bool,
    pub counts: unsafe extern "C" fn(ClientHandle, *mut c_char, usize),
}

#[cfg(test)]
mod tests {
    const HEADER: &str = include_str!("../../overlay/tree/hw/net/tigon2/client.h");
    const MIRROR: &str = include_str!("ffi.rs");

    /// Names of the members of a C structure, in their order.
    fn c_members(name: &str) -> Vec<String> {
        let body = HEADER
            .split_once(&format!("typedef struct {name} {{"))
            .and_then(|(_, rest)| rest.split_once(&format!("}} {name};")))
            .map_or("", |(body, _)| body);
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
            .map_or("", |(body, _)| body);
        let field = |line: &str| {
            let (name, _) = line.trim().strip_prefix("pub ")?.split_once(':')?;
            Some(name.to_owned())
        };
        body.lines().filter_map(field).collect()
    }

    #[test]
    fn the_mirror_has_the_members_of_the_header() {
        for (c, rust) in [
            ("Tigon2ClientConfig", "Config"),
            ("Tigon2ClientCard", "Nature"),
            ("Tigon2ClientHost", "HostOps"),
            ("Tigon2ClientOps", "ClientOps"),
        ] {
            let members = c_members(c);
            assert!(members.len() >= 2, "{c} was found in the header");
            assert_eq!(members, fields(rust), "{c}");
        }
    }

    #[test]
    fn the_mirror_has_the_numbers_of_the_header() {
        for line in [
            format!("#define TIGON2_CLIENT_ABI {}\n", super::ABI),
            format!("#define TIGON2_CONFIG_BYTES {}\n", super::CONFIG_BYTES),
        ] {
            assert!(HEADER.contains(&line), "{line}");
        }
    }
}
