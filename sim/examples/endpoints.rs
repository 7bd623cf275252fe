//! Measures an endpoint of a simulated card and prints how the CPUs' cycles were spent, as a quick
//! check after a change: `endpoints IMAGE WHAT SIZE[,SIZE...]`, where WHAT is `out` or `in` for
//! streams, and `alone-out` or `alone-in` for one datagram at a time. `ENDPOINTS_MTU=9000` and
//! `ENDPOINTS_CUT=1` (frames may leave early) change the endpoint, with `ENDPOINTS_SUM=1` datagrams have
//! a checksum, and `ENDPOINTS_CAUSES=1` adds the causes of each handler's cycles.

use eudp::{
    AddressHandle, Card, Checksum, Completion, CutThrough, Destination, Endpoint, EndpointConfig,
    Eudp, Region,
};
use host_driver::nic::EndpointCard;
use host_driver::{Config, DmaMemory, Nic};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;
use tigon2_chip::events::EventBit;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::{Activity, Cause, Counts};
use tigon2_sim::transport::SharedMachine;
use tigon2_sim::{Machine, SimTransport};

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Bytes of a buffer to receive.
const BUFFER: u32 = 0x1_0000;
/// Buffers to receive that are lent; half of them are lent again with one doorbell.
const LENT: u32 = 16;
/// Datagrams that are measured.
const COUNT: u32 = 300;
/// Nanoseconds between two looks of the host.
const LOOK: u64 = 200;

struct Bench {
    machine: SharedMachine,
    nic: Nic<SimTransport>,
    eudp: Eudp,
    endpoint: Endpoint<DmaMemory>,
    region: Region,
    peer: AddressHandle,
}

impl Bench {
    fn start(image: &[u8]) -> Bench {
        let has = |name| std::env::var_os(name).is_some();
        let mtu = std::env::var("ENDPOINTS_MTU").map_or(1500, |mtu| mtu.parse().expect("a number"));
        let machine = Machine::timed(Board::default(), Parameters::default(), 1);
        let transport = SimTransport::new(machine);
        let machine = transport.machine();
        let config = Config {
            mtu,
            ..Config::default()
        };
        let mut nic = Nic::probe(transport, config).expect("a card");
        nic.load(image).expect("it starts");
        nic.open().expect("it opens");
        nic.wait_link(Duration::from_secs(10)).expect("a link");
        let station = nic.station();
        let card = &mut EndpointCard(&mut nic);
        let mut eudp = Eudp::find(card).expect("firmware with endpoints");
        let cut = if has("ENDPOINTS_CUT") {
            CutThrough::OfBus
        } else {
            CutThrough::Off
        };
        eudp.set_cut_through(card, cut).expect("the card");
        let config = EndpointConfig {
            station,
            address: Ipv4Addr::new(10, 0, 0, 1),
            port: 4711,
            vlan: None,
            mtu: mtu as u32,
            checksum: if has("ENDPOINTS_SUM") {
                Checksum::Full
            } else {
                Checksum::None
            },
            ..EndpointConfig::default()
        };
        let mut endpoint = eudp.open(card, config).expect("an endpoint");
        let memory = card.allocate(1 << 20).expect("memory");
        let region = eudp.register(card, &mut endpoint, &memory);
        let to = Destination {
            station: PEER,
            address: Ipv4Addr::new(10, 0, 0, 2),
            lifetime: 64,
            dont_fragment: false,
        };
        let peer = eudp.address(card, &mut endpoint, &to).expect("room");
        machine.lock().run(100_000);
        while machine.lock().take_frame().is_some() {}
        Bench {
            machine,
            region: region.expect("a region"),
            nic,
            eudp,
            endpoint,
            peer,
        }
    }

    fn now(&self) -> u64 {
        self.machine.lock().now()
    }

    fn pass(&self) {
        let mut machine = self.machine.lock();
        let cycles = machine.clock().cycle_at(LOOK);
        machine.run(cycles);
    }

    fn counts(&self) -> Vec<Counts> {
        let machine = self.machine.lock();
        let timing = machine.timing().expect("timed");
        timing
            .pipelines
            .iter()
            .map(|pipeline| pipeline.counts.clone())
            .collect()
    }

    fn post(&mut self, bytes: usize, cookie: u32) {
        let card = &mut EndpointCard(&mut self.nic);
        let to = (self.peer, 9);
        let posted = if bytes <= eudp::INLINE_BYTES as usize {
            self.endpoint
                .send_inline(card, to, &[0x5A; 64][..bytes], cookie)
        } else {
            let piece = self.region.segment(0, bytes as u32);
            self.endpoint.send(card, to, &[piece], cookie)
        };
        posted.expect("it is posted");
    }

    /// Lends buffers, and tells the card of all at once.
    fn lend_all(&mut self, numbers: Range<u32>) {
        let card = &mut EndpointCard(&mut self.nic);
        for number in numbers {
            let piece = self.region.segment(number % LENT * BUFFER, 0xFFFF);
            let lent = self.endpoint.lend(card, &[piece], number);
            lent.expect("it is lent");
        }
        self.endpoint.submit(card).expect("the card is there");
    }

    fn poll(&mut self) -> Option<Completion> {
        let card = &mut EndpointCard(&mut self.nic);
        self.endpoint.poll(card).expect("the card is there")
    }

    fn settle(&mut self) {
        for _ in 0..200 {
            self.poll();
            self.pass();
        }
    }

    /// The time of the next frame's end.
    fn sent(&mut self) -> u64 {
        let end = self.now() + 50_000_000;
        while self.now() < end {
            if let Some(frame) = self.machine.lock().take_frame() {
                return frame.at;
            }
            self.poll();
            self.pass();
        }
        panic!("a frame does not leave")
    }

    /// The frames of a datagram to the endpoint: its fragments, if it is longer than the MTU.
    fn frames(&self, bytes: usize, number: u16) -> Vec<Vec<u8>> {
        let (source, destination) = ([10, 0, 0, 2], [10, 0, 0, 1]);
        let data = vec![0x5A; bytes];
        let mut packet = Vec::new();
        let header = etherparse::UdpHeader::without_ipv4_checksum(9, 4711, bytes);
        let mut header = header.expect("a datagram");
        if std::env::var_os("ENDPOINTS_SUM").is_some() {
            let sum = header.calc_checksum_ipv4_raw(source, destination, &data);
            header.checksum = sum.expect("a datagram");
        }
        header.write(&mut packet).expect("memory");
        packet.extend(data);
        let room = self.endpoint.config().mtu as usize - 20;
        let most = if packet.len() <= room {
            room
        } else {
            room & !7
        };
        let parts = packet.chunks(most).enumerate();
        parts
            .map(|(part, payload)| {
                let mut header = etherparse::Ipv4Header::new(
                    payload.len() as u16,
                    64,
                    etherparse::IpNumber::UDP,
                    source,
                    destination,
                )
                .expect("a packet");
                let offset = (part * most / 8) as u16;
                header.fragment_offset = offset.try_into().expect("13 bits");
                header.more_fragments = (part + 1) * most < packet.len();
                header.dont_fragment = false;
                header.identification = number;
                header.header_checksum = header.calc_header_checksum();
                let ethernet = etherparse::Ethernet2Header {
                    source: PEER,
                    destination: self.nic.station(),
                    ether_type: etherparse::EtherType::IPV4,
                };
                let mut frame = ethernet.to_bytes().to_vec();
                header.write(&mut frame).expect("memory");
                frame.extend(payload);
                frame.resize(frame.len().max(60), 0);
                frame
            })
            .collect()
    }

    fn arrived(&mut self) -> u32 {
        let end = self.now() + 50_000_000;
        while self.now() < end {
            if let Some(Completion::Received { cookie, .. }) = self.poll() {
                return cookie;
            }
            self.pass();
        }
        panic!("a datagram does not arrive")
    }

    /// What is measured: nanoseconds, and datagrams.
    fn measure(&mut self, what: &str, bytes: usize) -> (u64, u32) {
        let begun = self.now();
        match what {
            "out" => {
                for cookie in 0..COUNT {
                    self.post(bytes, cookie);
                }
                let mut first = None;
                let mut last = 0;
                let mtu = self.endpoint.config().mtu as usize;
                let frames = if bytes + 28 <= mtu {
                    1
                } else {
                    (bytes + 8).div_ceil((mtu - 20) & !7) as u32
                };
                for number in 0..COUNT * frames {
                    last = self.sent();
                    if number + 1 == frames {
                        first = Some(last);
                    }
                }
                (last - first.unwrap_or(0), COUNT - 1)
            }
            "in" => {
                self.lend_all(0..LENT);
                self.settle();
                let mut at = self.now();
                for number in 0..COUNT {
                    for frame in self.frames(bytes, number as u16) {
                        at = self.machine.lock().send_frame(at, frame);
                    }
                }
                self.arrived();
                let first = self.now();
                for number in 1..COUNT {
                    self.arrived();
                    if number % (LENT / 2) == 0 {
                        self.lend_all(number..number + LENT / 2);
                    }
                }
                (self.now() - first, COUNT - 1)
            }
            "alone-out" => {
                let mut total = 0;
                for cookie in 0..30 {
                    let begun = self.now();
                    self.post(bytes, cookie);
                    total += self.sent() - begun;
                    self.settle();
                }
                (total, 30)
            }
            "alone-in" => {
                let mut total = 0;
                for number in 0..30 {
                    self.lend_all(number..number + 1);
                    self.settle();
                    let mut ends = self.now();
                    for frame in self.frames(bytes, number as u16) {
                        ends += (frame.len() as u64 + 24) * 8;
                        self.machine.lock().send_frame(0, frame);
                    }
                    ends -= 12 * 8;
                    self.arrived();
                    total += self.now() - ends;
                }
                (total, 30)
            }
            _ => (self.now() - begun, 1),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [image, what, sizes] = &arguments[..] else {
        panic!("endpoints IMAGE out|in|alone-out|alone-in SIZES");
    };
    let image = std::fs::read(image).expect("a readable image");
    let causes = std::env::var_os("ENDPOINTS_CAUSES").is_some();
    for size in sizes.split(',') {
        let bytes: usize = size.parse().expect("a size");
        let mut bench = Bench::start(&image);
        let before = bench.counts();
        let start = bench.now();
        let (time, count) = bench.measure(what, bytes);
        let all = bench.now() - start;
        let each = time as f64 / f64::from(count);
        let rate = bytes as f64 * 8000.0 / each;
        println!(
            "{size} B {what}: {:.2} us each, {rate:.0} Mb/s, {:.0} k/s",
            each / 1000.0,
            1e6 / each
        );
        let after = bench.counts();
        let datagrams = f64::from(count + u32::from(!what.starts_with("alone")));
        let cuts = bench.eudp.cuts(&mut EndpointCard(&mut bench.nic));
        let [through, aborted, faults] = cuts.expect("the card is there");
        println!("  {through} cut through, {aborted} aborted, {faults} faults");
        for (cpu, (before, after)) in ["A", "B"].iter().zip(before.iter().zip(&after)) {
            let mut busy = 0;
            for (activity, tally) in after.since(before).iter() {
                let name = match activity {
                    Activity::Idle => continue,
                    Activity::Handler(bit) => EventBit::from_number(u32::from(bit))
                        .map_or_else(|| bit.to_string(), |event| event.name().to_owned()),
                    other => format!("{other:?}"),
                };
                if tally.total() == 0 {
                    continue;
                }
                busy += tally.total();
                print!(
                    "  {cpu} {name:32} runs {:6.2} instr {:7.1} cycles {:7.1}",
                    tally.runs as f64 / datagrams,
                    tally.instructions as f64 / datagrams,
                    tally.total() as f64 / datagrams
                );
                if causes {
                    for cause in Cause::ALL.into_iter().skip(1) {
                        let cycles = tally.of(cause) as f64 / datagrams;
                        print!(" {} {cycles:.1}", cause.name());
                    }
                }
                println!();
            }
            let share = busy as f64 / (all as f64 * 0.088);
            println!("  {cpu} busy {share:.3}");
        }
    }
}
