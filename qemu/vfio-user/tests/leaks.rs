//! Nothing stays behind when a client goes. Alone in its process, since it counts
//! the descriptors of all of it.

mod common;

use common::*;
use rustix::fd::AsFd;
use vfio_user_nic::DmaRange;
use vfio_user_nic::message::irq;

#[test]
fn clients_follow_one_another_and_leave_nothing_behind() {
    let bench = Bench::new();
    bench.client().device_info().unwrap();
    bench.until(|d| d.disconnects.len() == 1);
    let before = open_descriptors();
    for round in 0..20 {
        let mut client = bench.client();
        let (memory, event) = (memory(0x1000), event());
        let range = DmaRange::read_write(0x1000, 0x1000);
        client.dma_map(range, Some((memory.as_fd(), 0))).unwrap();
        client
            .set_irq_eventfd(irq::INTX, Some(event.as_fd()))
            .unwrap();
        drop(client);
        bench.until(|d| d.disconnects.len() == round + 2);
        assert!(bench.dma.is_empty());
        assert!(!bench.interrupts.is_connected());
    }
    assert_eq!(open_descriptors(), before);
}
