//! What operations there are, how they end, and what may be set of a socket.

/// Flag of a receive: the event comes when all bytes are there, or the stream has ended.
pub const WHOLE: u16 = 0x0100;
/// Flag of a transmit: the sending direction ends behind it, without a shutdown.
pub const LAST: u16 = 0x0200;
/// Flag of an accept, and of a receive into anonymous buffers: it stays posted and has an event
/// each time, with [`MORE`] while it stays.
pub const MULTISHOT: u16 = 0x0400;
/// Flag of an event: the operation is still posted, and more events of it will come.
pub const MORE: u16 = 0x8000;
/// The operation's part of an operation word; the flags are the rest.
const NUMBER: u16 = 0x00FF;

/// What an operation does. Work queue, section IV and Table I.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Operation {
    /// Makes the socket of the handle. Its transmit queue is bound to the event queue in bits 0 to
    /// 15 of `argument`, its receive queue to the one in bits 16 to 31.
    Socket = 1,
    /// Gives it the local port in `argument`.
    Bind,
    /// Lets at most `length` connections wait to be accepted.
    Listen,
    /// Takes the next connection of a listening socket as the handle in `argument`; with
    /// [`MULTISHOT`] all that come, each as a handle of the engine's choice.
    Accept,
    /// Connects: `argument` is the address in bits 16 to 47, the port in bits 0 to 15.
    Connect,
    /// Sends `length` bytes from `offset` of the region in `argument` ([`region_argument`]);
    /// completes when they may be overwritten. With [`LAST`] the sending direction ends behind them.
    Transmit,
    /// Receives at most `length` bytes to `offset` of the region in `argument`; 0 bytes are the
    /// end of the stream. With [`WHOLE`] all of them, or those before the end. The region
    /// [`ANONYMOUS`] stands for a buffer of the anonymous pool: the event's `child` is its number.
    Receive,
    /// Ends the sending direction, after everything that was posted.
    Shutdown,
    /// Frees the handle; a connection that is not shut down on both sides is reset.
    Close,
    /// Sets the [`SocketOption`] in the upper half of `argument` to the lower half.
    SetOption,
    /// Asks for the [`SocketOption`] in the upper half of `argument`: the event's `argument`.
    GetOption,
    /// Cancels the socket's operations with the tag in `argument`: the event's `length` counts
    /// them.
    Cancel,
    /// Registers `length` bytes from `offset` of the pool as the region in `argument`.
    Register,
    /// Ends the region in `argument`.
    Deregister,
    /// As [`Operation::Transmit`] without a copy: the bytes are read where they are whenever a
    /// packet leaves, and it completes when the peer has acknowledged them.
    TransmitInPlace,
    /// Not an operation: the socket's queue in `argument` (0 transmit, 1 receive) has got a
    /// descriptor. It has no event.
    Doorbell,
    /// Gives the anonymous buffer in `argument` back.
    Release,
}

impl Operation {
    const ALL: [Self; 17] = [
        Self::Socket,
        Self::Bind,
        Self::Listen,
        Self::Accept,
        Self::Connect,
        Self::Transmit,
        Self::Receive,
        Self::Shutdown,
        Self::Close,
        Self::SetOption,
        Self::GetOption,
        Self::Cancel,
        Self::Register,
        Self::Deregister,
        Self::TransmitInPlace,
        Self::Doorbell,
        Self::Release,
    ];

    /// The operation of a descriptor's or event's word, if the word has no flags but the
    /// operation's own.
    #[must_use]
    pub fn from_number(word: u16) -> Option<Self> {
        let number = word & NUMBER;
        let known = Self::ALL.into_iter().find(|one| *one as u16 == number)?;
        let own = match known {
            Self::Receive => WHOLE | MULTISHOT | MORE,
            Self::Accept => MULTISHOT | MORE,
            Self::Transmit | Self::TransmitInPlace => LAST,
            _ => 0,
        };
        (word & !NUMBER & !own == 0).then_some(known)
    }

    /// Whether it moves payload of a region.
    #[must_use]
    pub fn is_transfer(self) -> bool {
        matches!(self, Self::Transmit | Self::TransmitInPlace | Self::Receive)
    }

    /// Whether its event, if it names no event queue, goes to that of the receive queue.
    #[must_use]
    pub fn receives(self) -> bool {
        matches!(self, Self::Receive | Self::Accept)
    }

    /// Whether it may do without an event.
    #[must_use]
    pub fn may_be_quiet(self) -> bool {
        matches!(self, Self::Register | Self::Deregister | Self::Release)
    }
}

/// What an application may set or ask of a socket. A socket accepted from a listening one begins
/// with that one's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SocketOption {
    /// 1: small segments are not held back (the default).
    NoDelay = 1,
    /// Milliseconds between probes of a silent peer; 0: none.
    KeepAlive,
    /// Milliseconds after which a peer that answers nothing is given up; 0: never.
    UserTimeout,
    /// Milliseconds after which a connect fails.
    ConnectTimeout,
    /// Hop limit of the packets, 1 to 255.
    HopLimit,
    /// Bytes of the send buffer; before connecting or listening only.
    SendBuffer,
    /// Bytes of the receive buffer; before connecting or listening only.
    ReceiveBuffer,
    /// Congestion control: 0 none, 1 Reno, 2 CUBIC; before connecting or listening only.
    Congestion,
    /// Own address and port, as in [`Operation::Connect`]; to ask only.
    LocalAddress,
    /// The peer's address and port; to ask only.
    PeerAddress,
    /// Bytes received that no operation has taken; to ask only.
    Unread,
    /// Bytes that the peer has not acknowledged; to ask only.
    Unacknowledged,
    /// 1: other sockets of the same user that have set it may bind and listen on the same port;
    /// before binding only.
    SharePort,
}

impl SocketOption {
    const ALL: [Self; 13] = [
        Self::NoDelay,
        Self::KeepAlive,
        Self::UserTimeout,
        Self::ConnectTimeout,
        Self::HopLimit,
        Self::SendBuffer,
        Self::ReceiveBuffer,
        Self::Congestion,
        Self::LocalAddress,
        Self::PeerAddress,
        Self::Unread,
        Self::Unacknowledged,
        Self::SharePort,
    ];

    /// The option of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as u32 == number)
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The descriptor has an unknown operation or number.
    Invalid,
    /// The handle names no socket, or one that is in use.
    BadHandle,
    /// The socket's state does not allow it.
    BadState,
    /// The region is not registered, its tag is another one, or the range is not in it.
    Protection,
    /// The port is taken.
    PortInUse,
    /// The peer reset the connection.
    Reset,
    /// The operation was cancelled, or its socket closed.
    Cancelled,
    /// Nobody listens at the peer's port.
    Refused,
    /// The peer did not answer in time.
    TimedOut,
    /// No route leads to the peer.
    Unreachable,
    /// The application's quota is used up.
    Quota,
    /// Operations under way use the region.
    Busy,
    /// The sending direction was shut down before.
    Ended,
}

impl Status {
    const ALL: [Self; 14] = [
        Self::Ok,
        Self::Invalid,
        Self::BadHandle,
        Self::BadState,
        Self::Protection,
        Self::PortInUse,
        Self::Reset,
        Self::Cancelled,
        Self::Refused,
        Self::TimedOut,
        Self::Unreachable,
        Self::Quota,
        Self::Busy,
        Self::Ended,
    ];

    /// The status of an event's number; an unknown one is [`Status::Invalid`].
    pub fn from_number(number: u16) -> Self {
        let found = Self::ALL.into_iter().find(|known| *known as u16 == number);
        found.unwrap_or(Self::Invalid)
    }
}
