//! `tigonctl link`: prints the state of the link, or takes it up or down.

use anyhow::{Result, bail};
use host_driver::status::Request;
use host_interface::LinkWord;
use host_interface::gencom::Gencom;
use serde_json::json;

use super::cli::{Arguments, LinkWanted};
use super::look::Source;
use super::output::Output;

/// `tigonctl link`
pub fn link(arguments: &Arguments, wanted: Option<LinkWanted>, output: &Output) -> Result<()> {
    if let Some(wanted) = wanted {
        let Some(mut source) = attached(arguments)? else {
            bail!("the link is its driver's to change: name its status socket with --attach");
        };
        let up = wanted == LinkWanted::Up;
        source.request(&Request::Link { up })?;
        let text = if up { "link wanted" } else { "no link wanted" };
        output.result("link-wanted", json!({ "up": up }), text);
        return Ok(());
    }
    let mut source = Source::open(arguments)?;
    let words = [Gencom::GigabitLinkState, Gencom::FastLinkState].map(Gencom::bar_offset);
    let words = source.registers(&words)?;
    let links = words.into_iter().map(LinkWord::from_bits);
    let Some(link) = links.into_iter().find(|word| word.up()) else {
        output.result("link", json!({ "up": false }), "link down");
        return Ok(());
    };
    let megabits = match (link.speed_1000(), link.speed_100()) {
        (true, _) => 1000,
        (false, true) => 100,
        (false, false) => 10,
    };
    let duplex = if link.full_duplex() { "full" } else { "half" };
    let (send, obey) = (link.transmit_flow_control(), link.receive_flow_control());
    let text = format!(
        "link up, {megabits} Mb/s, {duplex} duplex, PAUSE frames {}",
        match (send, obey) {
            (true, true) => "sent and obeyed",
            (true, false) => "sent",
            (false, true) => "obeyed",
            (false, false) => "not used",
        }
    );
    let value = json!({
        "up": true,
        "megabits": megabits,
        "full_duplex": link.full_duplex(),
        "sends_pause": send,
        "obeys_pause": obey,
    });
    output.result("link", value, &text);
    Ok(())
}

fn attached(arguments: &Arguments) -> Result<Option<Source>> {
    let given = arguments.attach.is_some();
    given.then(|| Source::open(arguments)).transpose()
}
