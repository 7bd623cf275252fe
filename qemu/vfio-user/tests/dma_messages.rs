//! Tests memory without a file: DMA by messages, also against a busy socket and device.

mod common;

use common::raw::{command, framed};
use common::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vfio_user_nic::message::region::BAR0;
use vfio_user_nic::message::{Command, DmaAccess, HEADER_BYTES, Header, flags};
use vfio_user_nic::{Client, ClientError, DmaError, DmaHandler, DmaRange, Errno};
use zerocopy::IntoBytes;

/// Memory of a client, as far as it was written; one address cannot be reached.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

const BROKEN: u64 = 0x1_0000;

impl Memory {
    fn word(&self, address: u64) -> u32 {
        let mut word = [0; 4];
        self.copy(address, &mut word);
        u32::from_ne_bytes(word)
    }

    fn copy(&self, address: u64, out: &mut [u8]) {
        let bytes = self.0.lock().unwrap();
        let there = bytes.get(address as usize..).unwrap_or_default();
        let n = there.len().min(out.len());
        out[..n].copy_from_slice(&there[..n]);
        out[n..].fill(0);
    }
}

impl DmaHandler for Memory {
    fn dma_read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Errno> {
        if address == BROKEN {
            return Err(Errno::FAULT);
        }
        self.copy(address, out);
        Ok(())
    }

    fn dma_write(&mut self, address: u64, data: &[u8]) -> Result<(), Errno> {
        let mut bytes = self.0.lock().unwrap();
        let (at, end) = (address as usize, address as usize + data.len());
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[at..end].copy_from_slice(data);
        Ok(())
    }
}

fn client_with_memory(bench: &Bench, range: DmaRange) -> (Client, Memory) {
    let mut client = bench.client();
    let memory = Memory::default();
    client.set_dma_handler(Some(Box::new(memory.clone())));
    client.dma_map(range, None).unwrap();
    (client, memory)
}

#[test]
fn a_register_write_does_dma_while_the_client_waits_for_its_reply() {
    let bench = Bench::new();
    let (mut client, memory) = client_with_memory(&bench, DmaRange::read_write(0x1000, 0x1000));
    for n in 1..=10 {
        let address = 0x1800u64.to_ne_bytes();
        client.region_write(BAR0, DMA_INCREMENT, &address).unwrap();
        assert_eq!(bench.device().dma_result, Some(Ok(())));
        assert_eq!(memory.word(0x1800), n);
    }
}

#[test]
fn transfers_larger_than_a_message_are_cut() {
    let bench = Bench::new();
    let bytes = (2 << 20) + 12;
    let (mut client, memory) = client_with_memory(&bench, DmaRange::read_write(0, 4 << 20));
    let dma = bench.dma.clone();
    let device = std::thread::spawn(move || {
        let data: Vec<u8> = (0..bytes).map(|i| (i % 253) as u8).collect();
        dma.write(5, &data).unwrap();
        let mut back = vec![0; bytes];
        dma.read(5, &mut back).unwrap();
        assert_eq!(back, data);
    });
    let mut served = 0;
    while !device.is_finished() {
        served += client.serve(SHORT).unwrap();
    }
    device.join().unwrap();
    assert_eq!(served, 6);
    assert_eq!(memory.0.lock().unwrap().len(), 5 + bytes);
}

#[test]
fn refusals_and_permissions_come_back_to_the_device() {
    let bench = Bench::new();
    let (mut client, _memory) = client_with_memory(&bench, DmaRange::read_write(BROKEN, 0x1000));
    let write = |client: &mut Client, address: u64| {
        client
            .region_write(BAR0, DMA_INCREMENT, &address.to_ne_bytes())
            .unwrap();
        bench.device().dma_result.unwrap()
    };
    let refused = DmaError::Refused {
        address: BROKEN,
        errno: Errno::FAULT,
    };
    assert_eq!(write(&mut client, BROKEN), Err(refused));
    let only_read = DmaRange {
        writable: false,
        ..DmaRange::read_write(0x5000, 0x1000)
    };
    client.dma_map(only_read, None).unwrap();
    assert_eq!(write(&mut client, 0x5000), Err(DmaError::Denied(0x5000)));
    // Over the end of the range, and of the address space.
    assert_eq!(write(&mut client, 0x5ffe), Err(DmaError::Unmapped(0x6000)));
    assert_eq!(
        write(&mut client, u64::MAX),
        Err(DmaError::Overflow(u64::MAX))
    );
    // A client without a handler refuses.
    client.set_dma_handler(None);
    let refused = DmaError::Refused {
        address: BROKEN,
        errno: Errno::OPNOTSUPP,
    };
    assert_eq!(write(&mut client, BROKEN), Err(refused));
}

#[test]
fn an_access_crosses_from_mapped_memory_into_messages() {
    use rustix::fd::AsFd;
    let bench = Bench::new();
    let (mut client, memory) = client_with_memory(&bench, DmaRange::read_write(0x2000, 0x1000));
    let file = memory_file();
    client
        .dma_map(
            DmaRange::read_write(0x1000, 0x1000),
            Some((file.as_fd(), 0)),
        )
        .unwrap();
    let address = 0x1ffeu64.to_ne_bytes();
    client.region_write(BAR0, DMA_INCREMENT, &address).unwrap();
    assert_eq!(bench.device().dma_result, Some(Ok(())));
    let word = 1u32.to_ne_bytes();
    assert_eq!(word_at(&file, 0xffc).to_ne_bytes()[2..], word[..2]);
    assert_eq!(memory.word(0x2000).to_ne_bytes()[..2], word[2..]);
}

fn memory_file() -> std::fs::File {
    memory(0x1000)
}

#[test]
fn a_client_that_does_not_answer_costs_the_timeout_and_no_more() {
    let bench = Bench::with(|config| config.patience = Duration::from_millis(300));
    let mut client = bench.client();
    client
        .dma_map(DmaRange::read_write(0x1000, 0x1000), None)
        .unwrap();
    let start = Instant::now();
    let mut word = [0; 4];
    assert_eq!(
        bench.dma.read(0x1000, &mut word),
        Err(DmaError::Timeout(0x1000))
    );
    assert!(start.elapsed() >= Duration::from_millis(300));
    // The late answer is dropped, and the connection is as good as before.
    client.set_dma_handler(Some(Box::new(Memory::default())));
    assert_eq!(client.serve(SHORT).unwrap(), 1);
    let address = 0x1000u64.to_ne_bytes();
    client.region_write(BAR0, DMA_INCREMENT, &address).unwrap();
    assert_eq!(bench.device().dma_result, Some(Ok(())));
}

#[test]
fn a_client_that_goes_away_wakes_the_device_at_once() {
    let bench = Bench::new();
    let mut client = bench.client();
    client
        .dma_map(DmaRange::read_write(0x1000, 0x1000), None)
        .unwrap();
    let dma = bench.dma.clone();
    let device = std::thread::spawn(move || {
        let start = Instant::now();
        let result = dma.read(0x1000, &mut [0; 4]);
        assert!(
            start.elapsed() < Duration::from_secs(4),
            "waited for the timeout"
        );
        result
    });
    std::thread::sleep(SHORT);
    drop(client);
    let error = device.join().unwrap().unwrap_err();
    // Disconnected if it waited, unmapped if it came too late for that.
    assert!(
        matches!(error, DmaError::Disconnected | DmaError::Unmapped(_)),
        "{error}"
    );
}

/// A vCPU holds the device's lock and does DMA by messages, while the client fills
/// the socket with posted writes for which the server's thread needs that lock.
#[test]
fn dma_under_the_devices_lock_does_not_deadlock() {
    let bench = Bench::new();
    let (mut client, memory) = client_with_memory(&bench, DmaRange::read_write(0x1000, 0x1000));
    let stop = Arc::new(AtomicBool::new(false));
    let vcpu = {
        let (device, dma, stop) = (bench.device.clone(), bench.dma.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut n = 0u32;
            while !stop.load(Ordering::Relaxed) {
                let _big_lock = device.lock().unwrap();
                let mut word = [0; 4];
                dma.read(0x1000, &mut word).unwrap();
                assert_eq!(u32::from_ne_bytes(word), n);
                n += 1;
                dma.write(0x1000, &n.to_ne_bytes()).unwrap();
            }
            n
        })
    };
    let start = Instant::now();
    let mut posted = 0u32;
    while start.elapsed() < Duration::from_millis(500) {
        // More than the socket's buffers hold.
        for _ in 0..20_000 {
            posted += 1;
            client
                .region_post(BAR0, 0x40, &posted.to_ne_bytes())
                .unwrap();
        }
        let mut word = [0; 4];
        client.region_read(BAR0, 0x40, &mut word).unwrap();
        assert_eq!(u32::from_ne_bytes(word), posted);
    }
    stop.store(true, Ordering::Relaxed);
    while !vcpu.is_finished() {
        client.serve(SHORT).unwrap();
    }
    let n = vcpu.join().unwrap();
    assert!(n > 0, "the vCPU never came to its turn");
    assert_eq!(memory.word(0x1000), n);
}

/// A client whose posts are stuck in a full socket answers in between; it may have
/// nothing else to say for long.
#[test]
fn a_flush_answers_what_came_while_the_socket_was_full() {
    let bench = Bench::new();
    let (mut client, _memory) = client_with_memory(&bench, DmaRange::read_write(0x1000, 0x1000));
    let (locked, is_locked) = std::sync::mpsc::channel();
    let vcpu = {
        let (device, dma) = (bench.device.clone(), bench.dma.clone());
        std::thread::spawn(move || {
            let _big_lock = device.lock().unwrap();
            locked.send(()).unwrap();
            // Until the client has filled the socket.
            std::thread::sleep(Duration::from_millis(200));
            dma.read(0x1000, &mut [0; 4])
        })
    };
    is_locked.recv().unwrap();
    for _ in 0..2000 {
        client.region_post(BAR0, 0, &[0; 1024]).unwrap();
    }
    client.flush().unwrap();
    assert_eq!(vcpu.join().unwrap(), Ok(()));
}

/// Two vCPUs at a time, without a common lock: each gets its own replies.
#[test]
fn replies_find_their_threads() {
    let bench = Bench::new();
    let (mut client, _memory) = client_with_memory(&bench, DmaRange::read_write(0, 0x10_0000));
    let vcpus: Vec<_> = (0..4u32)
        .map(|cpu| {
            let dma = bench.dma.clone();
            std::thread::spawn(move || {
                for i in 0..200u32 {
                    let address = u64::from(cpu * 0x1000 + i % 16 * 4);
                    let value = cpu << 16 | i;
                    dma.write(address, &value.to_ne_bytes()).unwrap();
                    let mut word = [0; 4];
                    dma.read(address, &mut word).unwrap();
                    assert_eq!(u32::from_ne_bytes(word), value);
                }
            })
        })
        .collect();
    while !vcpus.iter().all(|v| v.is_finished()) {
        client.serve(SHORT).unwrap();
        client.device_info().unwrap();
    }
    for vcpu in vcpus {
        vcpu.join().unwrap();
    }
}

/// A stop gets through to a thread that waits for a DMA reply with the lock.
#[test]
fn a_stop_wakes_a_waiting_vcpu() {
    let mut bench = Bench::new();
    let mut client = bench.client();
    client
        .dma_map(DmaRange::read_write(0x1000, 0x1000), None)
        .unwrap();
    let vcpu = {
        let (device, dma) = (bench.device.clone(), bench.dma.clone());
        std::thread::spawn(move || {
            let _big_lock = device.lock().unwrap();
            dma.read(0x1000, &mut [0; 4])
        })
    };
    std::thread::sleep(SHORT);
    bench.thread.take().unwrap().stop().unwrap();
    let error = vcpu.join().unwrap().unwrap_err();
    assert!(
        matches!(error, DmaError::Disconnected | DmaError::Unmapped(_)),
        "{error}"
    );
    assert!(matches!(
        client.device_info(),
        Err(ClientError::Disconnected)
    ));
}

/// A request that is read together with a reply is in no socket any more: nobody would be
/// woken for it, so it is served before the reply is handed over.
#[test]
fn what_comes_with_a_reply_is_served() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let server = std::thread::spawn(move || {
        let take = |stream: &mut UnixStream| {
            let mut header = Header::default();
            stream.read_exact(header.as_mut_bytes()).unwrap();
            let mut payload = vec![0; header.size as usize - HEADER_BYTES];
            stream.read_exact(&mut payload).unwrap();
            (header, payload)
        };
        let (version, _) = take(&mut theirs);
        let answer = framed(version.id, version.command, flags::REPLY, b"\0\0\0\0{}\0");
        theirs.write_all(&answer).unwrap();
        let (reset, _) = take(&mut theirs);
        let mut both = framed(reset.id, reset.command, flags::REPLY, &[]);
        let access = DmaAccess {
            address: 4,
            count: 4,
        };
        both.extend(command(Command::DmaRead, &access));
        theirs.write_all(&both).unwrap();
        take(&mut theirs)
    });
    let mut client = Client::from_stream(ours, Duration::from_secs(10)).unwrap();
    let memory = Memory::default();
    memory.0.lock().unwrap().extend([0, 0, 0, 0, 1, 2, 3, 4]);
    client.set_dma_handler(Some(Box::new(memory)));
    client.reset().unwrap();
    let (header, payload) = server.join().unwrap();
    assert!(header.is_reply() && header.failure().is_none());
    assert_eq!(payload[size_of::<DmaAccess>()..], [1, 2, 3, 4]);
}
