//! A buffer that was made up.

use spine::Buffer;
use std::marker::PhantomData;

fn forge() -> Buffer {
    Buffer {
        words: 0x4000 as *const u32,
        bytes: 4,
        not_sync: PhantomData,
    }
}

fn main() {}
