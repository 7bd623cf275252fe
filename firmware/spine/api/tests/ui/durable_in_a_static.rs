//! A durable right that is stored for a handler.

use spine::Durable;
use std::sync::Mutex;

static KEPT: Mutex<Option<&'static mut Durable>> = Mutex::new(None);

fn init(durable: &mut Durable) {
    *KEPT.lock().unwrap() = Some(durable);
}

fn main() {}
