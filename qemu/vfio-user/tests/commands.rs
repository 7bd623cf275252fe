//! Tests every command of the protocol, our client against our server.

mod common;

use common::*;
use rustix::fd::AsFd;
use std::os::unix::fs::FileExt;
use vfio_user_nic::message::{self, irq, irq_info_flags, region};
use vfio_user_nic::{Client, ClientError, Disconnect, DmaError, DmaRange, Errno};

fn word(client: &mut Client, offset: u64) -> u32 {
    let mut word = [0; 4];
    client.region_read(region::BAR0, offset, &mut word).unwrap();
    u32::from_ne_bytes(word)
}

#[test]
fn version_names_what_the_server_takes() {
    let bench = Bench::new();
    let mut client = bench.client();
    client.device_info().unwrap();
    let version = client.version();
    assert_eq!(version.major, 0);
    assert_eq!(version.capabilities.max_transfer, 1 << 20);
    assert!(version.capabilities.write_multiple);
    drop(client);
    bench.until(|d| d.disconnects == [Disconnect::Closed]);
    assert_eq!(bench.device().connects, 1);
}

#[test]
fn device_regions_and_interrupts_are_those_of_the_layout() {
    let bench = Bench::with(|config| config.layout.msi = true);
    let mut client = bench.client();
    let info = client.device_info().unwrap();
    assert_eq!(
        info.flags,
        message::device_flags::PCI | message::device_flags::RESET
    );
    assert_eq!(
        (info.num_regions, info.num_irqs),
        (region::COUNT, irq::COUNT)
    );
    let sizes: Vec<_> = (0..region::COUNT)
        .map(|i| client.region_info(i).unwrap().size)
        .collect();
    // The last one is the counts', which this device has not.
    assert_eq!(sizes, [BAR_BYTES, 0, 0, 0, 0, 0, 0, 256, 0, 0]);
    assert_eq!(client.region_info(region::BAR0).unwrap().flags, 3);
    let intx = client.irq_info(irq::INTX).unwrap();
    assert_eq!(intx.count, 1);
    assert_eq!(
        intx.flags,
        irq_info_flags::EVENTFD | irq_info_flags::MASKABLE | irq_info_flags::AUTOMASKED
    );
    assert_eq!(client.irq_info(irq::MSI).unwrap().count, 1);
    assert_eq!(client.irq_info(2).unwrap().count, 0);
    for refused in [
        client.region_info(region::COUNT).unwrap_err(),
        client.irq_info(irq::COUNT).unwrap_err(),
    ] {
        assert_eq!(refused_with(&refused), Some(Errno::INVAL), "{refused}");
    }
}

#[test]
fn a_device_without_msi_says_so() {
    let bench = Bench::new();
    assert_eq!(bench.client().irq_info(irq::MSI).unwrap().count, 0);
}

#[test]
fn regions_are_read_and_written_at_any_size() {
    let bench = Bench::new();
    let mut client = bench.client();
    let mut config = [0; 256];
    client.region_read(region::CONFIG, 0, &mut config).unwrap();
    assert!(config.iter().enumerate().all(|(i, byte)| *byte == i as u8));
    let block: Vec<u8> = (0..0x1000).map(|i| (i % 251) as u8).collect();
    client.region_write(region::BAR0, 0x1001, &block).unwrap();
    let mut back = vec![0; block.len()];
    client.region_read(region::BAR0, 0x1001, &mut back).unwrap();
    assert_eq!(back, block);
}

#[test]
fn posted_writes_arrive_in_order_before_a_later_read() {
    let bench = Bench::new();
    let mut client = bench.client();
    for i in 0..100_000u32 {
        client
            .region_post(region::BAR0, u64::from(i % 64) * 4, &i.to_ne_bytes())
            .unwrap();
    }
    assert_eq!(word(&mut client, 0), 99_968);
    for i in 0..64u32 {
        let last = (0..100_000).rev().find(|n| n % 64 == i).unwrap();
        assert_eq!(word(&mut client, u64::from(i) * 4), last);
    }
    // That many commands took far fewer turns of the device's lock.
    let batches = bench.device().batches;
    assert!(batches < 5_000, "{batches} batches");
}

/// Our client posts; others (QEMU's) collect writes in REGION_WRITE_MULTI.
#[test]
fn several_writes_may_come_in_one_message() {
    use common::raw::{Raw, command};
    use zerocopy::IntoBytes;
    let bench = Bench::new();
    let mut raw = Raw::negotiated(&bench.path);
    let writes: Vec<_> = (1..=8u8)
        .map(|n| message::MultiWrite {
            offset: u64::from(n) * 16,
            region: region::BAR0,
            count: n.into(),
            data: [n; 8],
        })
        .collect();
    let payload = [8u64.as_bytes(), writes.as_bytes()].concat();
    raw.send(&command(
        message::Command::RegionWriteMulti,
        payload.as_slice(),
    ));
    let (header, reply) = raw.reply().unwrap();
    assert_eq!((header.error, reply.as_slice()), (0, 8u64.as_bytes()));
    let device = bench.device();
    for n in 1..=8usize {
        let mut expected = [0; 16];
        expected[..n].fill(n as u8);
        assert_eq!(device.bar[n * 16..][..16], expected, "{n} bytes");
    }
}

/// A client that asks for much at once does not keep the device for itself, nor
/// make the server keep all the replies.
#[test]
fn large_replies_give_the_lock_back() {
    use common::raw::{Raw, command};
    let bench = Bench::new();
    let mut raw = Raw::negotiated(&bench.path);
    let read = message::RegionAccess {
        offset: 0,
        region: region::BAR0,
        count: BAR_BYTES as u32,
    };
    raw.send(&command(message::Command::RegionRead, &read).repeat(100));
    for _ in 0..100 {
        let (header, payload) = raw.reply().unwrap();
        assert_eq!((header.error, payload.len() as u64), (0, 16 + BAR_BYTES));
    }
    let batches = bench.device().batches;
    assert!((6..=60).contains(&batches), "{batches} batches");
}

#[test]
fn a_flush_alone_delivers_posted_writes() {
    let bench = Bench::new();
    let mut client = bench.client();
    client
        .region_post(region::BAR0, 0x10, &[1, 2, 3, 4])
        .unwrap();
    assert_eq!(bench.device().bar[0x10], 0);
    client.flush().unwrap();
    bench.until(|d| d.bar[0x10..0x14] == [1, 2, 3, 4]);
}

#[test]
fn the_devices_errors_reach_the_client_and_harm_nothing() {
    let bench = Bench::new();
    let mut client = bench.client();
    let error = client
        .region_write(region::BAR0, FAILING, &[0; 4])
        .unwrap_err();
    assert_eq!(refused_with(&error), Some(Errno::IO), "{error}");
    assert!(!error.is_fatal());
    client.region_post(region::BAR0, FAILING, &[0; 4]).unwrap();
    assert_eq!(word(&mut client, 0), 0);
    assert_eq!(
        bench
            .thread
            .as_ref()
            .unwrap()
            .stop_handle()
            .counters()
            .errors,
        2
    );
}

#[test]
fn accesses_outside_a_region_are_refused() {
    let bench = Bench::new();
    let mut client = bench.client();
    for (region, offset, bytes) in [
        (region::BAR0, BAR_BYTES, 1),
        (region::BAR0, BAR_BYTES - 3, 4),
        (region::BAR0, u64::MAX, 4),
        (region::CONFIG, 0, 257),
        (1, 0, 4),
        (region::COUNT, 0, 4),
        (u32::MAX, 0, 4),
    ] {
        let mut data = vec![0; bytes];
        let read = client.region_read(region, offset, &mut data).unwrap_err();
        let write = client.region_write(region, offset, &data).unwrap_err();
        for error in [read, write] {
            assert_eq!(refused_with(&error), Some(Errno::INVAL), "{error}");
        }
    }
    let huge = vec![0; (1 << 20) + 1];
    let error = client.region_write(region::BAR0, 0, &huge).unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { .. }), "{error}");
}

#[test]
fn the_device_reaches_mapped_memory() {
    let bench = Bench::new();
    let mut client = bench.client();
    let memory = memory(0x8000);
    memory.write_all_at(&41u32.to_ne_bytes(), 0x4010).unwrap();
    let range = DmaRange::read_write(0x10_0000, 0x4000);
    client
        .dma_map(range, Some((memory.as_fd(), 0x4000)))
        .unwrap();
    let address: u64 = 0x10_0010;
    client
        .region_write(region::BAR0, DMA_INCREMENT, &address.to_ne_bytes())
        .unwrap();
    assert_eq!(bench.device().dma_result, Some(Ok(())));
    assert_eq!(word_at(&memory, 0x4010), 42);
    // After the unmap the device no longer reaches it.
    client.dma_unmap(0x10_0000, 0x4000).unwrap();
    client
        .region_write(region::BAR0, DMA_INCREMENT, &address.to_ne_bytes())
        .unwrap();
    assert_eq!(
        bench.device().dma_result,
        Some(Err(DmaError::Unmapped(address)))
    );
    assert_eq!(word_at(&memory, 0x4010), 42);
}

#[test]
fn wrong_maps_and_unmaps_are_refused() {
    let bench = Bench::new();
    let mut client = bench.client();
    let memory = memory(0x4000);
    let mut map = |iova, size, offset| {
        let result = client.dma_map(
            DmaRange::read_write(iova, size),
            Some((memory.as_fd(), offset)),
        );
        match result {
            Ok(()) => None,
            Err(error) => Some(refused_with(&error).expect("an errno")),
        }
    };
    assert_eq!(map(0x1_0000, 0x2000, 0), None);
    assert_eq!(map(0x1_0000, 0x2000, 0), Some(Errno::EXIST));
    assert_eq!(map(0x1_1fff, 1, 0), Some(Errno::EXIST));
    assert_eq!(map(0xf000, 0x1001, 0), Some(Errno::EXIST));
    assert_eq!(map(0xf000, 0x1000, 0), None);
    assert_eq!(map(0x1_2000, 0x1000, 0), None);
    assert_eq!(map(0x9_0000, 0, 0), Some(Errno::INVAL));
    assert_eq!(map(u64::MAX - 0xfff, 0x1001, 0), Some(Errno::INVAL));
    assert_eq!(map(u64::MAX - 0xfff, 0x1000, 0), None);
    // Beyond the end of the file: touching it would raise SIGBUS.
    assert_eq!(map(0x20_0000, 0x4001, 0), Some(Errno::INVAL));
    assert_eq!(map(0x20_0000, 0x1000, 0x4000), Some(Errno::INVAL));
    assert_eq!(map(0x20_0000, 0x1000, u64::MAX), Some(Errno::INVAL));
    for (iova, size) in [(0x1_0000, 0x1000), (0x1_1000, 0x1000), (0x30_0000, 0x1000)] {
        let error = client.dma_unmap(iova, size).unwrap_err();
        assert_eq!(refused_with(&error), Some(Errno::NOENT), "{error}");
    }
    assert_eq!(bench.dma.len(), 4);
    client.dma_unmap_all().unwrap();
    assert!(bench.dma.is_empty());
}

#[test]
fn reset_reaches_the_device() {
    let bench = Bench::new();
    let mut client = bench.client();
    client.region_write(region::BAR0, 0, &[1, 2, 3, 4]).unwrap();
    client.reset().unwrap();
    assert_eq!(word(&mut client, 0), 0);
    assert_eq!(bench.device().resets, 1);
}

#[test]
fn a_stopped_server_lets_go_of_its_client_and_its_socket() {
    let mut bench = Bench::new();
    let mut client = bench.client();
    client.device_info().unwrap();
    bench.thread.take().unwrap().stop().unwrap();
    assert_eq!(bench.device().disconnects, [Disconnect::Stopped]);
    let error = client.device_info().unwrap_err();
    assert!(matches!(error, ClientError::Disconnected), "{error}");
    assert!(error.is_fatal());
    assert!(!bench.path.exists());
}

/// Posters of two threads beside a client that asks all the time: each message arrives
/// whole, and each thread's in their order.
#[test]
fn threads_post_beside_a_client() {
    const WRITES: u32 = 3000;
    let bench = Bench::new();
    let mut client = bench.client();
    std::thread::scope(|scope| {
        for place in [0x10, 0x20] {
            let mut poster = client.poster();
            scope.spawn(move || {
                for number in 1..=WRITES {
                    let value = number.to_ne_bytes();
                    poster.region_post(region::BAR0, place, &value).unwrap();
                    if number % 3 == 0 {
                        poster.flush().unwrap();
                    }
                }
            });
        }
        let mut last = [0; 2];
        while last != [WRITES; 2] {
            for (last, place) in last.iter_mut().zip([0x10, 0x20]) {
                let now = word(&mut client, place);
                assert!((*last..=WRITES).contains(&now), "{now} after {last}");
                *last = now;
            }
            client
                .region_post(region::BAR0, 0x30, &last[0].to_ne_bytes())
                .unwrap();
        }
    });
    assert_eq!(word(&mut client, 0x30), WRITES);
    let huge = vec![0; (1 << 20) + 4];
    let refused = client.poster().region_post(region::BAR0, 0, &huge);
    assert!(matches!(refused, Err(ClientError::TooLarge { .. })));
}
