//! The interfaces of the runtime: what an extension can be linked with.
//!
//! One list for the compiler's driver, the linker and the firmware. The number of an interface
//! is its place in the list, and in the table of addresses that the firmware publishes
//! (`host_interface::spine`). The hash is of name and signature: an extension that was built
//! against another signature is refused by it.

/// A function that a domain exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The domain's name, a dot, the function's.
    pub name: &'static str,
    /// What it takes and returns, in Rust's words.
    pub signature: &'static str,
    /// Bytes of stack that it may use, with all that it calls.
    pub stack: u32,
    /// Whether it is for `init` alone: it asks for a `Durable`.
    pub durable: bool,
}

macro_rules! interfaces {
    ($( $(#[$doc:meta])* $name:ident: $text:literal, $signature:literal, $stack:literal $($durable:ident)?; )+) => {
        /// Numbers of the interfaces.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Number {
            $( $(#[$doc])* $name, )+
        }

        /// All of them, by their numbers.
        pub const ALL: &[Interface] = &[
            $( Interface {
                name: $text,
                signature: $signature,
                stack: $stack,
                durable: interfaces!(@durable $($durable)?),
            }, )+
        ];
    };
    (@durable durable) => { true };
    (@durable) => { false };
}

interfaces! {
    /// Installs a handler.
    AddHandler: "spine.runtime.add_handler", "fn(HandlerProc, u32, u32) -> u32", 64 durable;
    /// Ends the run of an extension that has panicked.
    Panic: "spine.runtime.panic", "fn() -> !", 64;
    /// Microseconds since the firmware started.
    Now: "spine.clock.now", "fn() -> u32", 64;
    /// Notes a changed word of the frame.
    Patch: "spine.network.patch", "fn(u32, u32) -> u32", 64;
    /// Notes that the frame is to be transmitted.
    Transmit: "spine.network.transmit", "fn() -> u32", 64;
    /// Notes a count.
    Count: "spine.counter.add", "fn(u32) -> u32", 64;
    /// Notes three changed words of the frame that follow each other.
    PatchThree: "spine.network.patch_three", "fn(u32, u32, u32, u32) -> u32", 64;
    /// Notes that the frame is to be kept.
    Keep: "spine.buffer.keep", "fn() -> u32", 64;
    /// The frames that the domain keeps.
    Kept: "spine.buffer.kept", "fn() -> u32", 64;
    /// Where a frame lies that the domain keeps.
    Words: "spine.buffer.words", "fn(u32) -> *const u32", 64;
    /// Notes that a kept frame is to be transmitted.
    Send: "spine.buffer.transmit", "fn(u32) -> u32", 64;
    /// Notes that a kept frame is given back.
    Release: "spine.buffer.release", "fn(u32) -> u32", 64;
    /// Says whom a handler lets call it.
    Accept: "spine.message.accept", "fn(u32, u32) -> u32", 64 durable;
    /// Notes a message to an endpoint.
    SendMessage: "spine.message.send", "fn(u32, *const u32, u32) -> u32", 64;
    /// Notes a message to the wire.
    SendWire: "spine.message.send_wire", "fn(u32, u32, *const u32, u32) -> u32", 64;
    /// Notes a message to the own domain.
    Post: "spine.message.post", "fn(u32, *const u32, u32) -> u32", 64;
    /// Notes that the frame is to be handed to the peer.
    Forward: "spine.peer.forward", "fn() -> u32", 64;
    /// Notes that bytes of the frame are to be written into the domain's lease.
    Transfer: "spine.dma.transfer", "fn(u32, u32, u32) -> u32", 64;
    /// Notes a message to the peer.
    SendPeer: "spine.peer.send", "fn(u32, *const u32, u32) -> u32", 64;
    /// Exports a procedure.
    Export: "spine.gate.export", "fn(u32, Procedure) -> u32", 64 durable;
    /// Calls a procedure of another extension, whose stack comes on top of this.
    Call: "spine.gate.call", "fn(*const Context, u32, *const u32) -> u64", 64;
    /// Says what becomes of what a run had that was cut off.
    WhenCut: "spine.runtime.when_cut", "fn(u32) -> u32", 64 durable;
}

/// How many there are.
pub const COUNT: usize = ALL.len();

/// The domain of an interface: what is in front of the last dot.
pub fn domain(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(domain, _)| domain)
}

/// What a procedure takes and returns that an extension exports to others: three words, and one.
pub const PROCEDURE: &str = "fn(u32, u32, u32) -> u32";

/// The hash of a procedure that an extension exports.
pub const fn procedure_hash(name: &str) -> u32 {
    hash(name, PROCEDURE)
}

/// Of name and signature: FNV-1a, 32 bits.
pub const fn hash(name: &str, signature: &str) -> u32 {
    let mut hash = 0x811C_9DC5;
    hash = fold(hash, name.as_bytes());
    fold(hash, signature.as_bytes())
}

const fn fold(mut hash: u32, bytes: &[u8]) -> u32 {
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u32).wrapping_mul(0x0100_0193);
        index += 1;
    }
    hash
}

impl Interface {
    /// See [`hash`].
    pub const fn hash(&self) -> u32 {
        hash(self.name, self.signature)
    }
}

/// The interface of a name, with its number.
pub fn find(name: &str) -> Option<(usize, &'static Interface)> {
    ALL.iter().enumerate().find(|(_, one)| one.name == name)
}
