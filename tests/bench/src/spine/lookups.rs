//! What a lookup in the router's LC-trie costs, in the card's cycles.
//!
//! The extension is the router's own source with two handlers in place of its own: one looks up each of
//! the addresses that a frame brings, the other only reads them. What the first takes longer, a lookup
//! takes.

use super::card::{Kit, SpineCard};
use super::cost::FRAME;
use super::guarded::ROUTES;
use super::handled::run;
use super::router;
use anyhow::{Context, Result, ensure};
use host_interface::spine::HandlerCount;
use spine_linker::load::Guard;
use spine_linker::routes;
use std::fs;
use testbed::paths;
use tigon2_sim::timing::Parameters;

/// Handlers of the source that is added.
const LOOKS_UP: u8 = 1;
const READS: u8 = 2;
/// Addresses of a frame, behind the words of its headers; and frames.
const ADDRESSES: usize = 64;
const HEADER_WORDS: usize = 9;
const FRAMES: usize = 16;
/// Microseconds that a run may take.
const WATCHDOG: u32 = 255;

/// Installs the router's handler, and these.
const INSTALLS: &str = "    add_handler(durable, route, ROUTE, Argument::NIL);\n";
const INSTALLS_OTHERS: &str = "    add_handler(durable, looks_up, HandlerNumber(1), Argument::NIL);
    add_handler(durable, reads, HandlerNumber(2), Argument::NIL);
";
/// The handlers. What they find has to be of use, or a compiler leaves it out.
const HANDLERS: &str = "
fn looks_up(_: Ephemeral<'_>, message: &Message, _: &Context) -> Verdict {
    let mut sum = 0u32;
    for address in message.buffer().words().iter().skip(9) {
        if let Some((high, low)) = next_hop(*address) {
            sum = sum.wrapping_add(high ^ low);
        }
    }
    if sum == 1 { Verdict::Host } else { Verdict::Consume }
}

fn reads(_: Ephemeral<'_>, message: &Message, _: &Context) -> Verdict {
    let mut sum = 0u32;
    for address in message.buffer().words().iter().skip(9) {
        sum = sum.wrapping_add(*address);
    }
    if sum == 1 { Verdict::Host } else { Verdict::Consume }
}
";

/// The router with these handlers.
fn container(kit: &Kit) -> Result<Vec<u8>> {
    let router = paths::root().join(router::FOLDER).join("src/lib.rs");
    let source = fs::read_to_string(&router).with_context(|| router.display().to_string())?;
    let installs = source.matches(INSTALLS).count();
    ensure!(installs == 1, "the router installs {installs} handlers");
    let source = source.replace(INSTALLS, INSTALLS_OTHERS) + HANDLERS;
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("src"))?;
    fs::write(folder.path().join("src/lib.rs"), source)?;
    let api = paths::root().join("firmware/spine/api");
    let manifest = format!(
        "[package]\nname = \"lookups\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [dependencies]\nspine = {{ path = {:?} }}\n[workspace]\n",
        api.display().to_string()
    );
    fs::write(folder.path().join("Cargo.toml"), manifest)?;
    kit.container(folder.path())
}

/// Cycles of a lookup, with the addresses of its next hop: the mean of addresses of all routes.
///
/// # Errors
/// What a wall says.
pub fn measure(kit: &Kit, parameters: &Parameters) -> Result<f64> {
    let all = router::routes(ROUTES, 0)?;
    let table = routes::table(&all)?;
    let enter = kit.symbol("spine_enter")?;
    let container = container(kit)?;
    let cycles = |handler| -> Result<u64> {
        let mut card = SpineCard::start(kit, Some(parameters.clone()))?;
        let policy = kit.policy(WATCHDOG, 0)?;
        let (domain, _) = card.load(kit, &container, &policy)?;
        routes::replace(&mut card.loader, &mut card.window, domain, &table)?;
        card.guards(&[Guard::any(domain, handler)])?;
        let mut cycles = 0;
        for first in 0..FRAMES {
            // Routes far from each other, and addresses that are not the first of theirs.
            let routes = all.iter().skip(first).step_by(all.len() / ADDRESSES);
            let addresses = routes.take(ADDRESSES).zip(1u32..).map(|(route, number)| {
                let others = u32::MAX.checked_shr(route.length()).unwrap_or(0);
                route.prefix() | number.wrapping_mul(0x9E37_79B9) & others
            });
            let mut frame = router::packet(card.nic.station(), 4 * HEADER_WORDS, first as u16);
            frame.extend(addresses.flat_map(u32::to_be_bytes));
            ensure!(
                frame.len() == 4 * (HEADER_WORDS + ADDRESSES),
                "a short frame"
            );
            let lasted = run(&mut card.machine.lock(), enter, frame)?;
            cycles += lasted.end - lasted.start;
        }
        card.machine.lock().run(FRAME);
        let runs = card.counts(domain).of(HandlerCount::Runs);
        ensure!(runs == FRAMES as u32, "{runs} runs");
        Ok(cycles)
    };
    let more = cycles(LOOKS_UP)? - cycles(READS)?;
    Ok(more as f64 / (FRAMES * ADDRESSES) as f64)
}
