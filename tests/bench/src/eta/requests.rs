//! Clients that ask for one file again and again, each as fast as it is answered.

use anyhow::{Result, bail, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use testbed::eta::{ADDRESS, Site};

/// Clients.
pub(super) const CLIENTS: usize = 8;
/// How long a server may take to begin, and an answer to come.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) file: usize,
    pub(super) persistent: bool,
}

pub(super) const LOADS: [Load; 3] = [
    Load {
        name: "1 kB, persistent",
        file: 1_000,
        persistent: true,
    },
    Load {
        name: "10 kB, persistent",
        file: 10_000,
        persistent: true,
    },
    Load {
        name: "1 kB, one connection each",
        file: 1_000,
        persistent: false,
    },
];

/// Waits for a first answer: then addresses are known, and the file is in the cache.
pub(super) fn answered(site: &Site, load: Load) -> Result<()> {
    std::thread::scope(|scope| {
        let first = scope.spawn(move || {
            site.namespace.enter()?;
            let start = Instant::now();
            while let Err(error) = client(load, Duration::from_millis(50)) {
                ensure!(start.elapsed() < PATIENCE, "no answer: {error:#}");
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        });
        joined(first)
    })
}

/// As [`answered`], with the first load.
pub(super) fn first_answer(site: &Site) -> Result<()> {
    answered(site, LOADS[0])
}

pub(super) fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    match thread.join() {
        Ok(result) => result,
        Err(_) => bail!("a client panicked"),
    }
}

/// So many clients ask for a time, each as fast as it is answered; how long each answer took, in
/// microseconds.
pub(super) fn clients(site: &Site, count: usize, load: Load, time: Duration) -> Result<Vec<u32>> {
    std::thread::scope(|scope| {
        let ask = || {
            site.namespace.enter()?;
            client(load, time)
        };
        let clients: Vec<_> = (0..count).map(|_| scope.spawn(ask)).collect();
        let answers: Result<Vec<_>> = clients.into_iter().map(joined).collect();
        Ok(answers?.concat())
    })
}

/// Asks for a time; how long each answer took, in microseconds.
fn client(load: Load, time: Duration) -> Result<Vec<u32>> {
    let at: SocketAddr = format!("{ADDRESS}:80").parse()?;
    let connection = if load.persistent {
        "keep-alive"
    } else {
        "close"
    };
    let request = format!(
        "GET /{} HTTP/1.1\r\nHost: bench\r\nConnection: {connection}\r\n\r\n",
        load.file
    );
    let start = Instant::now();
    let mut latencies = Vec::new();
    let mut kept: Option<TcpStream> = None;
    let mut buffer = vec![0; 64 * 1024];
    while start.elapsed() < time {
        let asked = Instant::now();
        let mut stream = match kept.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect_timeout(&at, PATIENCE)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream
            }
        };
        stream.write_all(request.as_bytes())?;
        let (mut got, mut expected) = (0, None);
        while expected.is_none_or(|expected| got < expected) {
            let count = stream.read(&mut buffer[got..])?;
            ensure!(count > 0, "a reply was cut after {got} bytes");
            got += count;
            if expected.is_none() {
                let end = buffer[..got]
                    .windows(4)
                    .position(|four| four == b"\r\n\r\n");
                expected = end.map(|end| end + 4 + load.file);
            }
        }
        ensure!(buffer.starts_with(b"HTTP/1.1 200"), "another reply");
        latencies.push(asked.elapsed().as_micros() as u32);
        if load.persistent {
            kept = Some(stream);
        }
    }
    Ok(latencies)
}
