//! The paper's server: a stack on each queue with one address, and clients in a closed loop.

use host_driver::knet::files::{Clients, FileServer};
use host_driver::knet::neighbours::Neighbours;
use host_driver::knet::stack::QueueStack;
use host_driver::knet::{self, PaceSettings, cpus};
use host_driver::nic::{Nic, QueueSettings};
use host_driver::peer::DatagramWire;
use host_driver::stack::{Host, Identity};
use host_driver::transport::vfio_user::VfioUser;
use integration_tests::engine::tools;
use smoltcp::wire::{IpAddress, IpEndpoint, Ipv4Address, Ipv4Cidr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions};

const QUEUES: u8 = 2;
const PORT: u16 = 80;
const SERVER: Ipv4Address = Ipv4Address::new(10, 84, 0, 1);
const CLIENT: Ipv4Address = Ipv4Address::new(10, 84, 0, 2);
const CLIENT_STATION: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Connections at a time.
const CONNECTIONS: usize = 8;
/// Files that clients fetch.
const FILES: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(60);

/// Fetches files until there were enough; gives those that came whole, and faults.
fn fetch(wire: DatagramWire, file: usize, fetched: &AtomicU64) -> [u64; 3] {
    let identity = Identity {
        station: CLIENT_STATION,
        address: Ipv4Cidr::new(CLIENT, 24),
    };
    let mut host = Host::new(wire, identity);
    let server = IpEndpoint::new(IpAddress::Ipv4(SERVER), PORT);
    let mut clients = Clients::new(&mut host.sockets, server, file, CONNECTIONS);
    let end = Instant::now() + PATIENCE;
    while clients.fetched < FILES && Instant::now() < end {
        let (interface, sockets) = host.parts();
        clients.turn(interface, sockets, true);
        host.turn().expect("the wire is there");
        fetched.store(clients.fetched, Ordering::Relaxed);
        host.wait(Duration::from_millis(1))
            .expect("the wire is there");
    }
    [clients.fetched, clients.broken, clients.corrupt]
}

fn serve_files(file: usize) {
    let tools = tools();
    let card = Card::start(&tools, &CardOptions::default());
    let card = card.unwrap_or_else(|error| panic!("{error:#}"));
    let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card()).expect("a socket");
    let transport = VfioUser::connect(&card.socket()).expect("a card");
    let mut nic = Nic::probe(transport, Default::default()).expect("a card");
    let firmware = std::fs::read(&tools.firmware.tg2).expect("the firmware");
    nic.load(&firmware).expect("good firmware");
    let identity = Identity {
        station: nic.station(),
        address: Ipv4Cidr::new(SERVER, 24),
    };
    let neighbours = Arc::new(Neighbours::default());
    let stack = |seed| {
        let table = neighbours.clone();
        QueueStack::new(identity, 1500, seed, table, |sockets| {
            FileServer::new(sockets, PORT, 2 * CONNECTIONS)
        })
    };
    let mut stacks: Vec<_> = (0..u64::from(QUEUES)).map(stack).collect();
    let parts = nic.open_queues(&QueueSettings::new(QUEUES));
    let mut parts = parts.unwrap_or_else(|split| panic!("{}", split.error));
    parts.control.wait_link(PATIENCE).expect("a link");
    let allowed = cpus::allowed().expect("a process runs somewhere");
    let cpus: Vec<usize> = allowed.into_iter().cycle().take(QUEUES.into()).collect();

    let (stop, fetched) = (AtomicBool::new(false), AtomicU64::new(0));
    let (served, said) = thread::scope(|scope| {
        let clients = scope.spawn(|| fetch(wire, file, &fetched));
        let pace = PaceSettings::default();
        let served = knet::serve(parts, &mut stacks, &cpus, pace, &stop, |_, progress| {
            assert!(progress.deaths.is_empty(), "{:?}", progress.deaths);
            stop.store(clients.is_finished(), Ordering::Relaxed);
        });
        (served, clients.join().expect("no panic"))
    });
    assert!(served.error.is_none(), "{:?}", served.error);
    let [whole, broken, corrupt] = said;
    assert!(whole >= FILES, "{whole} files, {broken} broken");
    assert_eq!((broken, corrupt), (0, 0));
    let each: Vec<u64> = stacks
        .iter()
        .map(|stack| stack.application().served())
        .collect();
    assert!(each.iter().sum::<u64>() >= whole, "{each:?}");
    assert!(
        each.iter().all(|files| *files > 0),
        "each thread serves: {each:?}"
    );
    assert_eq!(
        neighbours.station(CLIENT),
        Some(CLIENT_STATION),
        "ARP was in queue 0"
    );
}

#[test]
fn long_files_come_whole_from_the_stacks_of_two_threads() {
    serve_files(0);
}

#[test]
fn short_files_come_whole_from_the_stacks_of_two_threads() {
    serve_files(1);
}
