//! The flows of a run with queues, their ports chosen so that each queue has as many.

use anyhow::{Context, Result};
use host_driver::nic::QueueSettings;
use host_driver::rss::{Flow, Protocol};
use paycheck::report::Report;
use paycheck::{Plan, tcp, udp};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;
use testbed::net::namespace::Namespace;

/// The first port at which the host listens.
const HOST_PORTS: u16 = 7000;
/// The first port that the peer may send from.
const PEER_PORTS: u16 = 20_000;
/// Bytes of each message: with headers less than a frame.
const MESSAGE: usize = 1400;
/// How long a side waits for the other.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(50);

/// A conversation between the peer and the host behind the card, both of which send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Talk {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The peer's end.
    pub peer: SocketAddr,
    /// The host's end.
    pub host: SocketAddr,
    /// The queue that the card puts it in.
    pub queue: u32,
}

/// So many conversations for each queue, by what the classifier says of their ports.
///
/// # Errors
/// If the settings cannot be, or no port leads to a queue.
pub fn choose(
    settings: &QueueSettings,
    protocol: Protocol,
    each: usize,
    [peer, host]: [Ipv4Addr; 2],
) -> Result<Vec<Talk>> {
    let rss = settings.classification.rss(settings.queues)?;
    let mut talks = Vec::new();
    let mut from = PEER_PORTS;
    for number in 0..each {
        for queue in 0..settings.queues {
            let place = number * usize::from(settings.queues) + usize::from(queue);
            let host = SocketAddr::new(host.into(), HOST_PORTS + u16::try_from(place)?);
            let flow = Flow {
                protocol,
                source: SocketAddr::new(peer.into(), from),
                destination: host,
            };
            let port = rss.source_port(&flow, queue.into(), from..=u16::MAX)?;
            let port = port.with_context(|| format!("no port leads to queue {queue}"))?;
            from = port + 1;
            talks.push(Talk {
                protocol,
                peer: SocketAddr::new(peer.into(), port),
                host,
                queue: queue.into(),
            });
        }
    }
    Ok(talks)
}

impl Talk {
    /// What a side does, at so many megabits a second.
    fn plan(&self, listen: bool, mbps: f64, time: Duration) -> Plan {
        Plan {
            size: MESSAGE,
            rate: Some(mbps),
            duration: time,
            patience: PATIENCE,
            ..Plan::new(self.host, listen, true)
        }
    }

    /// The host's side: listens.
    fn listen(&self, host: &Namespace, mbps: f64, time: Duration) -> Result<Report> {
        host.enter()?;
        let plan = self.plan(true, mbps, time);
        match self.protocol {
            Protocol::Udp => udp::run(&plan),
            _ => tcp::run(&plan),
        }
    }

    /// The peer's side: calls from its port.
    fn call(&self, peer: &Namespace, mbps: f64, time: Duration) -> Result<Report> {
        peer.enter()?;
        let plan = self.plan(false, mbps, time);
        match self.protocol {
            Protocol::Udp => udp::call(&plan, &UdpSocket::bind(self.peer)?),
            _ => tcp::talk(&plan, self.connect()?),
        }
    }

    /// Connects from the chosen port, until somebody listens.
    fn connect(&self) -> Result<TcpStream> {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let from = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            rustix::net::sockopt::set_socket_reuseaddr(&from, true)?;
            bind(&from, &self.peer).with_context(|| format!("bind {}", self.peer))?;
            match connect(&from, &self.host) {
                Ok(()) => return Ok(TcpStream::from(from)),
                Err(error) if std::time::Instant::now() > end => {
                    return Err(error).with_context(|| format!("connect to {}", self.host));
                }
                Err(_) => thread::sleep(RETRY),
            }
        }
    }
}

/// Holds all conversations at once; `look` is called meanwhile. Gives what each peer's side
/// says, in their order.
///
/// # Errors
/// Those of the first that fails, or of `look`.
pub fn hold(
    talks: &[(Talk, f64)],
    host: &Namespace,
    peer: &Namespace,
    time: Duration,
    mut look: impl FnMut() -> Result<()>,
) -> Result<Vec<Report>> {
    thread::scope(|scope| {
        let sides = talks.iter().map(|(talk, mbps)| {
            let listening = scope.spawn(move || talk.listen(host, *mbps, time));
            let calling = scope.spawn(move || talk.call(peer, *mbps, time));
            (talk, listening, calling)
        });
        let sides: Vec<_> = sides.collect();
        while sides.iter().any(|(_, _, calling)| !calling.is_finished()) {
            look()?;
            thread::sleep(Duration::from_millis(50));
        }
        let panicked = |_| anyhow::anyhow!("a thread panicked");
        let reports = sides.into_iter().map(|(talk, listening, calling)| {
            let report = calling.join().map_err(panicked)?;
            let report = report.with_context(|| format!("{talk:?}"))?;
            listening
                .join()
                .map_err(panicked)?
                .with_context(|| format!("{talk:?}"))?;
            Ok(report)
        });
        reports.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_chosen_for_each_queue_and_never_twice() {
        let settings = QueueSettings::new(2);
        let ends = [Ipv4Addr::new(10, 77, 0, 2), Ipv4Addr::new(10, 77, 0, 1)];
        let talks = choose(&settings, Protocol::Tcp, 8, ends).expect("ports enough");
        assert_eq!(talks.len(), 16);
        let rss = settings.classification.rss(2).expect("good settings");
        for queue in 0..2 {
            let of_queue = talks.iter().filter(|talk| talk.queue == queue);
            assert_eq!(of_queue.count(), 8);
        }
        for talk in &talks {
            let flow = Flow {
                protocol: Protocol::Tcp,
                source: talk.peer,
                destination: talk.host,
            };
            let said = rss.explain(&flow).expect("one version of IP");
            assert_eq!(said.queue, Some(talk.queue), "{talk:?}");
        }
        let mut ports: Vec<u16> = talks.iter().map(|talk| talk.peer.port()).collect();
        ports.dedup();
        assert_eq!(ports.len(), 16);
    }
}
