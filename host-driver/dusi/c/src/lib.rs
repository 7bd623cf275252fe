//! DUSI for C: the names of Table I over the Rust library [`dusi`], with `include/dusi.h`.
//!
//! "Scalable networking for next-generation computing platforms", section IV. This crate is the
//! boundary, and has nothing of its own but the translation of types and errors.
//!
//! The contract of every function, which its `unsafe` blocks rely on: a pointer is null, which is
//! refused, or points to what its type says, for as long as the call lasts; a `Dusi_Ual` is used by
//! one thread at a time, and neither it nor a `Dusi_Region` after it was closed or deregistered.

#![deny(unsafe_code)]
#![allow(
    non_camel_case_types,
    non_snake_case,
    reason = "the names of the paper's Table I"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "one contract for all functions stands above"
)]

#[allow(unsafe_code, reason = "the C boundary")]
pub mod events;
#[allow(unsafe_code, reason = "the C boundary")]
pub mod memory;
#[allow(unsafe_code, reason = "the C boundary")]
pub mod operations;
#[allow(unsafe_code, reason = "the C boundary")]
pub mod ual;

use std::ffi::c_int;

use dusi::{DusiError, Status};

/// The errno of an operation's end.
fn errno(status: Status) -> c_int {
    match status {
        Status::Ok => 0,
        Status::Invalid => libc::EINVAL,
        Status::BadHandle => libc::EBADF,
        Status::BadState => libc::EOPNOTSUPP,
        Status::Protection => libc::EACCES,
        Status::PortInUse => libc::EADDRINUSE,
        Status::Reset => libc::ECONNRESET,
        Status::Cancelled => libc::ECANCELED,
        Status::Refused => libc::ECONNREFUSED,
        Status::TimedOut => libc::ETIMEDOUT,
        Status::Unreachable => libc::ENETUNREACH,
        Status::Quota => libc::EDQUOT,
        Status::Busy => libc::EBUSY,
        Status::Ended => libc::EPIPE,
    }
}

/// The negative errno of a call that was refused.
fn refused(error: &DusiError) -> c_int {
    let of = |error: &std::io::Error| error.raw_os_error().unwrap_or(libc::ECONNREFUSED);
    -match error {
        DusiError::Queue(dti::ring::RingError::Full) => libc::EAGAIN,
        DusiError::Queue(dti::ring::RingError::Nonsense) => libc::EPROTO,
        DusiError::Attach(error) if error.kind() == std::io::ErrorKind::QuotaExceeded => {
            libc::EDQUOT
        }
        DusiError::Attach(error) | DusiError::Mapping(error) | DusiError::Wait(error) => of(error),
        DusiError::Version => libc::EPROTONOSUPPORT,
        DusiError::Exhausted(_) => libc::ENOBUFS,
        DusiError::Range => libc::ERANGE,
        DusiError::EngineEnded => libc::ECONNABORTED,
    }
}

/// 0, or a negative errno.
fn code(result: Result<(), DusiError>) -> c_int {
    result.map_or_else(|error| refused(&error), |()| 0)
}
