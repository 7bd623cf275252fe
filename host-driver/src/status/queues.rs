//! Reports the receive queues to clients of the status socket.

use serde_json::{Value, json};

use crate::nic::{Control, NicError};
use crate::rss::words::RssWords;
use crate::transport::Transport;

/// What card and driver say of each queue: `{"queues": [..]}`.
pub(super) fn reports<T: Transport>(control: &mut Control<T>) -> Result<Value, String> {
    words(control)?;
    let queues = control.queue_reports().map_err(text)?;
    Ok(json!({ "queues": queues }))
}

/// How queues are chosen: `{"rss": {..}}`.
pub(super) fn rss<T: Transport>(control: &Control<T>) -> Result<Value, String> {
    Ok(json!({ "rss": words(control)? }))
}

/// Has them chosen in another way, and says how they are now.
pub(super) fn set_rss<T: Transport>(
    control: &mut Control<T>,
    wanted: &RssWords,
) -> Result<Value, String> {
    let open = words(control)?.queues;
    if wanted.queues != open {
        return Err(format!("{open} queues are open, not {}", wanted.queues));
    }
    let wanted = wanted.classification().map_err(|error| error.to_string())?;
    control.set_classification(&wanted).map_err(text)?;
    rss(control)
}

fn words<T: Transport>(control: &Control<T>) -> Result<RssWords, String> {
    let settings = control.queue_settings().map(RssWords::from);
    settings.ok_or_else(|| {
        "the card is in classic mode, without receive queues: bridge --queues opens them".to_owned()
    })
}

fn text(error: NicError) -> String {
    error.to_string()
}
