//! A field that lies behind its header.

spine::view! {
    /// Too short.
    pub struct Short: 8 bytes at 2 {
        /// Ends two bytes behind it.
        last: u32 at 6,
    }
}

fn read(short: &Short<'_>) -> u32 {
    short.last()
}

fn main() {}
