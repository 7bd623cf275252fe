//! Socket options by their numbers of the interface.

use dti::layout::{SocketOption, Status};
use host_driver::stack::flows::{Congestion, Options};

/// Smallest and largest buffer of a connection, each way.
const BUFFERS: std::ops::RangeInclusive<u32> = 2048..=4 << 20;
/// Longest time that can be set, in milliseconds.
const LONGEST: u32 = 24 * 60 * 60 * 1000;

/// Sets an option; `fresh` says that the socket has no connection and does not listen.
pub(crate) fn set(
    options: &mut Options,
    option: SocketOption,
    value: u32,
    fresh: bool,
) -> Result<(), Status> {
    let valid = match option {
        SocketOption::NoDelay => value <= 1,
        SocketOption::KeepAlive | SocketOption::UserTimeout => value <= LONGEST,
        SocketOption::ConnectTimeout => (1..=LONGEST).contains(&value),
        SocketOption::HopLimit => (1..=255).contains(&value),
        SocketOption::SendBuffer | SocketOption::ReceiveBuffer | SocketOption::Congestion
            if !fresh =>
        {
            return Err(Status::BadState);
        }
        SocketOption::SendBuffer | SocketOption::ReceiveBuffer => BUFFERS.contains(&value),
        SocketOption::Congestion => value <= 2,
        // Of the socket, not of its connection; or to ask only.
        SocketOption::SharePort
        | SocketOption::LocalAddress
        | SocketOption::PeerAddress
        | SocketOption::Unread
        | SocketOption::Unacknowledged => false,
    };
    if !valid {
        return Err(Status::Invalid);
    }
    match option {
        SocketOption::NoDelay => options.no_delay = value == 1,
        SocketOption::KeepAlive => options.keep_alive = value,
        SocketOption::UserTimeout => options.user_timeout = value,
        SocketOption::ConnectTimeout => options.connect_timeout = value,
        SocketOption::HopLimit => options.hop_limit = value as u8,
        SocketOption::SendBuffer => options.send_buffer = value,
        SocketOption::ReceiveBuffer => options.receive_buffer = value,
        SocketOption::Congestion => {
            options.congestion = match value {
                0 => Congestion::None,
                1 => Congestion::Reno,
                _ => Congestion::Cubic,
            };
        }
        _ => {}
    }
    Ok(())
}

/// The value of an option that can be set; none of others.
pub(crate) fn get(options: &Options, option: SocketOption) -> Option<u32> {
    Some(match option {
        SocketOption::NoDelay => options.no_delay.into(),
        SocketOption::KeepAlive => options.keep_alive,
        SocketOption::UserTimeout => options.user_timeout,
        SocketOption::ConnectTimeout => options.connect_timeout,
        SocketOption::HopLimit => options.hop_limit.into(),
        SocketOption::SendBuffer => options.send_buffer,
        SocketOption::ReceiveBuffer => options.receive_buffer,
        SocketOption::Congestion => match options.congestion {
            Congestion::None => 0,
            Congestion::Reno => 1,
            Congestion::Cubic => 2,
        },
        SocketOption::SharePort
        | SocketOption::LocalAddress
        | SocketOption::PeerAddress
        | SocketOption::Unread
        | SocketOption::Unacknowledged => return None,
    })
}
