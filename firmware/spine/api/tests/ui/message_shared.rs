//! A message that a static refers to.

use spine::Message;

static KEPT: Option<&'static Message> = None;

fn main() {}
