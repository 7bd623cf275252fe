//! Tests that a client leaves nothing behind when it disconnects. The test has its own process,
//! since it counts all descriptors of the process.

mod common;

use common::raw::{MAP, Raw, command, framed};
use common::*;
use rustix::fd::AsFd;
use vfio_user_nic::DmaRange;
use vfio_user_nic::message::{Command, irq};

#[test]
fn nothing_stays_behind() {
    let bench = Bench::new();
    bench.client().device_info().unwrap();
    bench.until(|d| d.disconnects.len() == 1);
    let before = open_descriptors();
    for _ in 0..20 {
        good_client(&bench);
        hostile_client(&bench);
    }
    bench.until(|d| d.disconnects.len() == 41);
    assert!(bench.dma.is_empty());
    assert!(!bench.interrupts.is_connected());
    assert_eq!(open_descriptors(), before);
}

/// Maps memory, connects an interrupt and goes.
fn good_client(bench: &Bench) {
    let mut client = bench.client();
    let (memory, event) = (memory(0x1000), event());
    let range = DmaRange::read_write(0x1000, 0x1000);
    client.dma_map(range, Some((memory.as_fd(), 0))).unwrap();
    client
        .set_irq_eventfd(irq::INTX, Some(event.as_fd()))
        .unwrap();
}

/// Sends descriptors wherever they do not belong, and breaks off in the middle.
fn hostile_client(bench: &Bench) {
    let mut raw = Raw::negotiated(&bench.path);
    let memory = memory(0x1000);
    let map = command(Command::DmaMap, &MAP);
    for count in [1, 2, 8, 9, 60] {
        let fds = vec![memory.as_fd(); count];
        raw.send_with(&command(Command::DeviceReset, &()), &fds);
        assert_ne!(raw.errno(), Some(0), "{count} descriptors with a reset");
        raw.send_with(&framed(1, 0x7777, 0, b"what"), &fds);
        assert_ne!(raw.errno(), Some(0));
        raw.send_with(&map, &fds);
        assert_eq!(raw.errno() == Some(0), count == 1);
    }
    for byte in &map[..20] {
        raw.send_with(&[*byte], &[memory.as_fd()]);
    }
}
