//! Sends a datagram to port 7 of an address by an endpoint, and prints the answer:
//! `datagram CARD.SOCK EUDP.TG2.BIN ADDRESS`. The peer answers if `ip neigh` has told it this card's
//! station as 10.84.0.1.

use eudp::{Card, Completion, Destination, EndpointConfig, Eudp, Status};
use host_driver::nic::EndpointCard;
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Config, DmaMemory, Nic};
use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

type Answer = Result<Vec<u8>, Box<dyn Error>>;

/// Sends `data` from memory that the card reads, and returns what it has written there as an answer.
pub fn ask<C>(card: &mut C, station: [u8; 6], to: &Destination, data: &[u8]) -> Answer
where
    C: Card<Memory = DmaMemory, Error: 'static>,
{
    let mut eudp = Eudp::find(card)?;
    let config = EndpointConfig {
        station,
        address: Ipv4Addr::new(10, 84, 0, 1),
        port: 4711,
        ..EndpointConfig::default()
    };
    let mut endpoint = eudp.open(card, config)?;
    let memory = card.allocate(8192)?;
    let region = eudp.register(card, &mut endpoint, &memory)?;
    let peer = eudp.address(card, &mut endpoint, to)?;
    endpoint.post(card, &[region.segment(4096, 2048)], 1)?;
    memory.write_bytes(0, data)?;
    endpoint.send(card, (peer, 7), &[region.segment(0, data.len() as u32)], 2)?;
    let mut turns = 0;
    let mut answer = loop {
        match endpoint.poll(card)? {
            Some(Completion::Received {
                status: Status::Done,
                datagram,
                ..
            }) => break vec![0; datagram.bytes as usize],
            Some(other) => println!("{other:?}"),
            None if card.wait(turns) => turns += 1,
            None => return Err("no answer".into()),
        }
    };
    memory.read_bytes(4096, &mut answer)?;
    eudp.close(card, endpoint)?;
    Ok(answer)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, image, address] = &arguments[..] else {
        return Err("datagram CARD.SOCK EUDP.TG2.BIN ADDRESS".into());
    };
    let mut nic = Nic::probe(VfioUser::connect(socket.as_ref())?, Config::default())?;
    nic.load(&std::fs::read(image)?)?;
    nic.open()?;
    nic.wait_link(Duration::from_secs(5))?;
    let to = Destination {
        station: [0xFF; 6],
        address: address.parse()?,
        lifetime: 64,
        dont_fragment: false,
    };
    let station = nic.station();
    println!(
        "{:?}",
        ask(&mut EndpointCard(&mut nic), station, &to, b"hello")?
    );
    Ok(())
}
