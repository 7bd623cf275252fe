//! Tests two Linux hosts, a card with two queues, and a network thread for each.

use std::sync::Mutex;
use testbed::conditions::DmaChannels;
use testbed::net::namespace;
use testbed::tools::Tools;
use tigon_bench::queues;

/// The namespaces have this process's number in their names.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A short one of what `cargo xtask qemu-run --queues 2` runs.
#[test]
fn two_queues_share_the_traffic_of_two_linux_hosts() {
    if !namespace::for_test() {
        return;
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let tools = Tools::from_environment().expect("cargo xtask test has built them");
    let report = queues::run(&tools, 2, 2, DmaChannels::default()).expect("traffic");
    println!("{}", report.table());
    assert_eq!(report.faults(), Vec::<String>::new(), "{}", report.table());
    assert!(report.tcp.flow.received > 500 && report.udp.flow.received > 50);
    assert!(report.queues.iter().all(|queue| queue.interrupts > 0));
    let cpus: Vec<_> = report.queues.iter().map(|queue| queue.cpu).collect();
    assert_ne!(cpus[0], cpus[1]);
}
