//! `tigonctl eudp`: an endpoint of this process, beside the kernel's share of the card.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use eudp::{
    AddressHandle, Card as _, Completion, CutThrough, DATAGRAM_MAX, Destination, Endpoint,
    EndpointConfig, Eudp, Region, Status,
};
use host_driver::DmaMemory;
use host_driver::Transport;
use host_driver::bridge::endpoints::Beside;
use host_driver::tap::Tap;
use serde_json::json;

use super::cli::{
    Arguments, EudpAction, EudpOptions, EudpPingOptions, EudpThroughputOptions, RunOptions,
};
use super::connect::seconds;
use super::output::Output;
use super::session::{bring_up, finish};

/// How long the peer's station may be looked for, and an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Routers that a packet may pass.
const LIFETIME: u8 = 64;
/// Bytes of a place for a datagram, and how many there are for each direction.
const PLACE: usize = 0x1_0000;
const PLACES: usize = 8;
/// Between two looks at a card that is another process.
const LOOK: Duration = Duration::from_micros(50);

/// `tigonctl eudp`
pub fn eudp(
    arguments: &Arguments,
    action: &EudpAction,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    match action {
        EudpAction::Ping(options) => ping(arguments, options, output, stop),
        EudpAction::Throughput(options) => throughput(arguments, options, output, stop),
    }
}

/// An endpoint, its memory and its peer.
struct Local {
    beside: Beside<Box<dyn Transport>>,
    eudp: Eudp,
    endpoint: Endpoint<DmaMemory>,
    memory: DmaMemory,
    region: Region,
    to: (AddressHandle, u16),
    peer: SocketAddrV4,
}

fn open(arguments: &Arguments, ends: &EudpOptions, run: &RunOptions) -> Result<Local> {
    let nic = bring_up(arguments, run)?;
    let (station, mtu) = (nic.station(), nic.config().mtu);
    let address = ends.address.0.address();
    let network = (address, ends.address.0.prefix_len());
    let tap = Tap::create_at(&ends.tap, station, mtu, network)?;
    let local = SocketAddrV4::new(address, ends.local_port);
    let beside = Beside::new(nic, tap, run.vlan, local);
    let mut beside =
        beside.with_context(|| format!("port {} is not to be had", ends.local_port))?;
    let Some(there) = beside.neighbour(ends.target, PATIENCE)? else {
        bail!("{} does not answer on the wire", ends.target);
    };
    let card = &mut beside.card();
    let mut eudp = Eudp::find(card)?;
    let cut = if ends.cut_through {
        CutThrough::OfBus
    } else {
        CutThrough::Off
    };
    eudp.set_cut_through(card, cut)?;
    let config = EndpointConfig {
        station,
        address,
        port: ends.local_port,
        vlan: run.vlan,
        mtu: u32::from(mtu).clamp(576, 9000),
        checksum: ends.checksum.into(),
        ..EndpointConfig::default()
    };
    let mut endpoint = eudp.open(card, config)?;
    let memory = card.allocate(2 * PLACES * PLACE)?;
    let region = eudp.register(card, &mut endpoint, &memory)?;
    let destination = Destination {
        station: there,
        address: ends.target,
        lifetime: LIFETIME,
        dont_fragment: false,
    };
    let handle = eudp.address(card, &mut endpoint, &destination)?;
    for place in 0..PLACES {
        lend(&mut endpoint, card, region, place)?;
    }
    Ok(Local {
        beside,
        eudp,
        endpoint,
        memory,
        region,
        to: (handle, ends.port),
        peer: SocketAddrV4::new(ends.target, ends.port),
    })
}

/// Lends a place for a datagram, behind those that are sent from.
fn lend<C: eudp::Card<Memory = DmaMemory>>(
    endpoint: &mut Endpoint<DmaMemory>,
    card: &mut C,
    region: Region,
    place: usize,
) -> Result<()>
where
    C::Error: Send + Sync + 'static,
{
    let at = ((PLACES + place) * PLACE) as u32;
    let piece = region.segment(at, DATAGRAM_MAX);
    Ok(endpoint.post(card, &[piece], place as u32)?)
}

impl Local {
    fn send(&mut self, place: usize, bytes: usize) -> Result<()> {
        let piece = self.region.segment((place * PLACE) as u32, bytes as u32);
        let card = &mut self.beside.card();
        Ok(self.endpoint.send(card, self.to, &[piece], place as u32)?)
    }

    /// The next completion; meanwhile the kernel's share moves.
    fn poll(&mut self) -> Result<Option<Completion>> {
        let moved = self.beside.turn()?;
        let completion = self.endpoint.poll(&mut self.beside.card())?;
        if completion.is_none() && !moved {
            std::thread::sleep(LOOK);
        }
        Ok(completion)
    }

    /// A datagram from the peer, if one has come: by the endpoint, or, if its fragments came in
    /// another order, by the kernel.
    fn received(&mut self, out: &mut [u8]) -> Result<Option<(usize, &'static str)>> {
        let completion = self.poll()?;
        if let Some(Completion::Received {
            cookie,
            status,
            datagram,
        }) = completion
        {
            let is_lost = status == Status::Incomplete;
            let is_done = status == Status::Done;
            ensure!(is_done || is_lost, "a datagram came in with {status:?}");
            let place = cookie as usize;
            let bytes = (datagram.bytes as usize).min(out.len());
            let at = (PLACES + place) * PLACE;
            self.memory.read_bytes(at, &mut out[..bytes])?;
            lend(
                &mut self.endpoint,
                &mut self.beside.card(),
                self.region,
                place,
            )?;
            let is_answer = is_done && datagram.from == self.peer;
            return Ok(is_answer.then_some((bytes, "endpoint")));
        }
        if let Some(Completion::Sent { status, .. }) = completion {
            ensure!(
                status == Status::Done,
                "a datagram went out with {status:?}"
            );
        }
        let there = self.beside.in_fragments(out);
        Ok(there
            .filter(|(_, from)| *from == self.peer)
            .map(|(bytes, _)| (bytes, "kernel")))
    }

    /// Closes the endpoint, and halts the card.
    fn end(mut self, run: &RunOptions, output: &Output) -> Result<()> {
        let card = &mut self.beside.card();
        let refused = self.eudp.refusals(card)?;
        self.eudp.close(card, self.endpoint)?;
        let value = json!({
            "no_buffer": refused.no_buffer,
            "bad_header": refused.bad_header,
            "bad_sum": refused.bad_sum,
            "bad_region": refused.bad_region,
            "overlap": refused.overlap,
            "no_context": refused.no_context,
            "expired": refused.expired,
            "misplaced": refused.misplaced,
            "duplicate": refused.duplicate,
            "unclaimed": refused.unclaimed,
            "kernel": self.beside.report(),
        });
        let text = format!(
            "refused: {} without a buffer, {} with a wrong sum, {} with a bad header, {} in fragments",
            refused.no_buffer,
            refused.bad_sum,
            refused.bad_header,
            refused.overlap + refused.no_context + refused.expired + refused.misplaced
        );
        output.result("eudp", value, &text);
        finish(self.beside.into_nic(), run, output)
    }
}

fn ping(
    arguments: &Arguments,
    options: &EudpPingOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let mut local = open(arguments, &options.ends, &options.run)?;
    let mut answer = vec![0; PLACE];
    for size in options.size.iter().map(|size| usize::from(*size)) {
        let (mut total, mut by) = (Duration::ZERO, "endpoint");
        let mut done = 0;
        for number in 0..options.count {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let byte = |at: usize| (at * 7 + at / 256) as u8 ^ (number as u8).wrapping_mul(37);
            let data: Vec<u8> = (0..size).map(byte).collect();
            let place = number as usize % PLACES;
            local.memory.write_bytes(place * PLACE, &data)?;
            let begun = Instant::now();
            local.send(place, size)?;
            let bytes = loop {
                ensure!(begun.elapsed() < PATIENCE, "{} bytes: no answer", size);
                if let Some((bytes, way)) = local.received(&mut answer)? {
                    by = way;
                    break bytes;
                }
            };
            ensure!(
                answer[..bytes] == data,
                "{size} bytes: the answer is another"
            );
            total += begun.elapsed();
            done += 1;
        }
        let mean = total.as_secs_f64() * 1e6 / f64::from(done.max(1));
        let value = json!({"bytes": size, "answers": done, "mean_us": mean, "by": by});
        let text = format!("{size} bytes: {done} answers, {mean:.0} us, by the {by}");
        output.result("ping", value, &text);
    }
    local.end(&options.run, output)
}

fn throughput(
    arguments: &Arguments,
    options: &EudpThroughputOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let limit = seconds(options.seconds)?;
    let mut local = open(arguments, &options.ends, &options.run)?;
    let size = usize::from(options.size);
    let begun = Instant::now();
    let (mut sent, mut places) = (0_u64, Vec::from_iter(0..PLACES));
    while begun.elapsed() < limit && !stop.load(Ordering::Relaxed) {
        while let Some(place) = places.pop() {
            local.send(place, size)?;
        }
        match local.poll()? {
            Some(Completion::Sent { cookie, status }) => {
                ensure!(
                    status == Status::Done,
                    "a datagram went out with {status:?}"
                );
                sent += 1;
                places.push(cookie as usize);
            }
            Some(Completion::Received { cookie, .. }) => {
                let (place, region) = (cookie as usize, local.region);
                lend(&mut local.endpoint, &mut local.beside.card(), region, place)?;
            }
            None => {}
        }
    }
    let time = begun.elapsed().as_secs_f64();
    let rate = sent as f64 * size as f64 * 8e-6 / time;
    let value = json!({"bytes": size, "datagrams": sent, "seconds": time, "megabits": rate});
    let text = format!("{sent} datagrams of {size} bytes in {time:.1} s: {rate:.1} Mb/s");
    output.result("throughput", value, &text);
    local.end(&options.run, output)
}
