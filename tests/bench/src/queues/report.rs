//! The results of a run with queues.

use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use host_driver::knet::SendCosts;
use host_driver::nic::QueueReport;
use paycheck::account::Flow;
use serde::{Deserialize, Serialize};

/// The share of the packets that each of two queues must have, in percent.
const SHARE: std::ops::RangeInclusive<f64> = 40.0..=60.0;

/// The whole report, as it stands in `target/reports/qemu-run-queues.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The firmware's version, as it reports it.
    pub firmware_version: String,
    /// How long each conversation sent.
    pub seconds: u32,
    /// Each queue.
    pub queues: Vec<Queue>,
    /// TCP conversations.
    pub tcp: Messages,
    /// UDP conversations.
    pub udp: Messages,
    /// Segments that reached either TCP out of order.
    pub out_of_order: u64,
    /// Frames from the peer to the host.
    pub inward: Account,
    /// Frames from the host to the peer.
    pub outward: Account,
    /// Pause frames, which the card sent by itself; they are among those outward.
    pub pauses: u64,
    /// Datagrams that reached a kernel and found no room in their socket.
    #[serde(default)]
    pub unread: u64,
    /// Frames dropped and counted, by reason, where it is not zero.
    pub drops: std::collections::BTreeMap<String, u64>,
    /// What turns at the send ring have cost.
    pub send: SendCosts,
}

/// One queue and its thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Queue {
    /// Its number.
    pub queue: u8,
    /// The CPU of its thread.
    pub cpu: Option<u32>,
    /// Frames that the card handed over.
    pub packets: u32,
    /// Of those of all queues, in percent.
    pub share: f64,
    /// Frames that its thread took.
    pub taken: u64,
    /// Interrupts that the card raised for it.
    pub interrupts: u32,
    /// Notices without an interrupt, the queue being polled.
    pub interrupts_avoided: u32,
    /// Frames that the card dropped for it.
    pub drops: u32,
    /// Times that its thread slept.
    pub naps: u64,
}

/// Messages with checked bytes, both ways together.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct Messages {
    pub conversations: usize,
    #[serde(flatten)]
    pub flow: Flow,
    pub mbps: f64,
}

/// Frames one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Frames that the kernel at one end gave to its device, and what the card itself sent.
    pub sent: u64,
    /// Frames that the kernel at the other end got.
    pub arrived: u64,
    /// Frames dropped in between and counted.
    pub dropped: u64,
    /// Frames that never left their kernel: the queue in front of its device was full, because the
    /// card held the wire by PAUSE or took no more. They are not among those sent.
    #[serde(default)]
    pub held: u64,
}

impl Account {
    /// Frames of which nobody says where they are.
    #[must_use]
    pub fn missing(&self) -> i64 {
        self.sent as i64 - self.arrived as i64 - self.dropped as i64
    }
}

impl Queue {
    /// Each queue, of what the driver says and how often the threads slept.
    #[must_use]
    pub fn all(reports: &[QueueReport], naps: impl Fn(u8) -> u64) -> Vec<Self> {
        let all: u64 = reports
            .iter()
            .map(|queue| u64::from(queue.card.frames))
            .sum();
        let queue = |queue: &QueueReport| Self {
            queue: queue.number,
            cpu: None,
            packets: queue.card.frames,
            share: f64::from(queue.card.frames) * 100.0 / all.max(1) as f64,
            taken: queue.frames,
            interrupts: queue.card.interrupts,
            interrupts_avoided: queue.card.interrupts_avoided,
            drops: queue.card.dropped(),
            naps: naps(queue.number),
        };
        reports.iter().map(queue).collect()
    }
}

impl Report {
    /// What must not be, in words; empty if all is well.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let two = self.queues.len() == 2;
        for queue in &self.queues {
            if two && !SHARE.contains(&queue.share) {
                let Queue { queue, share, .. } = queue;
                faults.push(format!("queue {queue} has {share:.1} % of the packets"));
            }
            if u64::from(queue.packets) != queue.taken {
                faults.push(format!(
                    "queue {}: the card handed over {} frames, its thread took {}",
                    queue.queue, queue.packets, queue.taken
                ));
            }
        }
        for (way, account) in [("in", &self.inward), ("out", &self.outward)] {
            if account.missing() != 0 {
                let missing = account.missing();
                faults.push(format!("{missing} frames {way} are lost and not counted"));
            }
        }
        let dropped = self.inward.dropped + self.outward.dropped;
        let held = self.inward.held + self.outward.held;
        for (name, Messages { flow, .. }) in [("TCP", &self.tcp), ("UDP", &self.udp)] {
            if flow.corrupt + flow.duplicated > 0 {
                faults.push(format!(
                    "{name}: {} damaged, {} twice",
                    flow.corrupt, flow.duplicated
                ));
            }
            if flow.reordered > 0 {
                faults.push(format!("{name}: {} messages out of order", flow.reordered));
            }
        }
        if self.tcp.flow.lost > 0 || self.udp.flow.lost > dropped + held + self.unread {
            faults.push(format!(
                "{} TCP and {} UDP messages lost, {dropped} frames dropped, {held} held back, \
                 {} datagrams unread",
                self.tcp.flow.lost, self.udp.flow.lost, self.unread
            ));
        }
        // A segment behind a lost one is out of order, too.
        if self.out_of_order > 0 && dropped + held == 0 {
            faults.push(format!("{} TCP segments out of order", self.out_of_order));
        }
        faults
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        let mut row = |name: &str, value: String| {
            table.add_row([name, &value]);
        };
        row("firmware", self.firmware_version.clone());
        for queue in &self.queues {
            let cpu = queue.cpu.map_or("-".to_owned(), |cpu| cpu.to_string());
            row(
                &format!("queue {}, CPU {cpu}", queue.queue),
                format!(
                    "{} packets ({:.1} %), {} interrupts ({} avoided), {} dropped, {} naps",
                    queue.packets,
                    queue.share,
                    queue.interrupts,
                    queue.interrupts_avoided,
                    queue.drops,
                    queue.naps
                ),
            );
        }
        for (name, messages) in [("TCP", &self.tcp), ("UDP", &self.udp)] {
            let flow = &messages.flow;
            row(
                &format!("{name}, {} both ways", messages.conversations),
                format!(
                    "{:.1} Mb/s; {} messages: {} lost, {} reordered, {} damaged",
                    messages.mbps, flow.sent, flow.lost, flow.reordered, flow.corrupt
                ),
            );
        }
        row("TCP segments out of order", self.out_of_order.to_string());
        for (name, account) in [("frames in", &self.inward), ("frames out", &self.outward)] {
            row(
                name,
                format!(
                    "{} sent, {} arrived, {} dropped and counted, {} missing; {} held back",
                    account.sent,
                    account.arrived,
                    account.dropped,
                    account.missing(),
                    account.held
                ),
            );
        }
        row("datagrams unread", self.unread.to_string());
        if self.pauses > 0 {
            row("pause frames", self.pauses.to_string());
        }
        for (reason, count) in &self.drops {
            row(&format!("dropped: {reason}"), count.to_string());
        }
        let turns = self.send.turns.max(1);
        row(
            "send ring",
            format!(
                "{} turns of {} ns, {} waited for, {} ns of waiting a turn",
                self.send.turns,
                self.send.held_ns / turns,
                self.send.waited,
                self.send.waited_ns / turns
            ),
        );
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Report {
        let queue = |queue, packets: u32| Queue {
            queue,
            packets,
            share: f64::from(packets) / 10.0,
            taken: packets.into(),
            ..Queue::default()
        };
        Report {
            queues: vec![queue(0, 480), queue(1, 520)],
            inward: Account {
                sent: 1003,
                arrived: 1000,
                dropped: 3,
                held: 0,
            },
            out_of_order: 4,
            ..Report::default()
        }
    }

    #[test]
    fn a_report_names_what_must_not_be() {
        assert_eq!(good().faults(), Vec::<String>::new());
        let fault = |change: fn(&mut Report)| {
            let mut report = good();
            change(&mut report);
            let faults = report.faults();
            assert_eq!(faults.len(), 1, "{faults:?}");
            faults[0].clone()
        };
        assert!(fault(|report| report.queues[0].share = 39.9).contains("queue 0 has 39.9 %"));
        assert!(fault(|report| report.queues[1].taken = 519).contains("its thread took 519"));
        assert!(fault(|report| report.inward.sent += 2).starts_with("2 frames in"));
        assert!(fault(|report| report.outward.arrived = 1).starts_with("-1 frames out"));
        assert!(fault(|report| report.udp.flow.reordered = 1).contains("out of order"));
        assert!(fault(|report| report.tcp.flow.corrupt = 1).contains("1 damaged"));
        assert!(fault(|report| report.tcp.flow.lost = 1).contains("1 TCP"));
        assert!(fault(|report| report.udp.flow.lost = 4).contains("4 UDP"));
        let in_order = fault(|report| {
            report.inward.dropped = 0;
            report.inward.sent = 1000;
        });
        assert_eq!(in_order, "4 TCP segments out of order");
    }

    /// Beside what is dropped, datagrams are lost in front of a device and in front of a socket.
    #[test]
    fn what_an_overloaded_run_loses_is_counted_somewhere() {
        let mut report = good();
        report.udp.flow.lost = 3 + 40 + 5;
        report.inward.held = 30;
        report.outward.held = 10;
        report.unread = 5;
        assert_eq!(report.faults(), Vec::<String>::new());
        report.udp.flow.lost += 1;
        assert_eq!(
            report.faults(),
            ["0 TCP and 49 UDP messages lost, 3 frames dropped, 40 held back, 5 datagrams unread"]
        );
        report.udp.flow.lost = 0;
        report.inward.sent = 1000;
        report.inward.dropped = 0;
        assert_eq!(
            report.faults(),
            Vec::<String>::new(),
            "a segment held back is lost, too"
        );
    }
}
