//! Tests a host with several CPUs on the real firmware and driver: files and datagrams arrive, and
//! every nanosecond of its CPUs is accounted for.

use etherparse::PacketBuilder;
use integration_tests::frames::PEER;
use integration_tests::stage;
use testbed::paths;
use tigon2_model::Board;
use tigon2_sim::hosts::account::Activity;
use tigon2_sim::hosts::card::{CardSetup, HostCard};
use tigon2_sim::hosts::policy::PolicyKind;
use tigon2_sim::hosts::profile::HostProfile;
use tigon2_sim::hosts::reception::{CardQueues, ModelledQueues, QueueReception, Spread};
use tigon2_sim::hosts::system::{System, World};
use tigon2_sim::hosts::web::SendCall;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::knet::check::check;
use tigon2_sim::workload::knet::random::RandomFrames;
use tigon2_sim::workload::knet::web::{self, Duration, Measured, Point};
use tigon2_sim::workload::knet::{figures, livelock};
use tigon2_sim::workload::testbench::Setup;

const SHORT: Duration = Duration {
    warm_up: 40_000_000,
    measure: 60_000_000,
};

fn with_setup<R>(seed: u64, run: impl FnOnce(&Setup<'_>) -> R) -> R {
    let firmware = stage::firmware();
    let setup = Setup {
        seed,
        ..Setup::new(Board::default(), Parameters::default(), &firmware)
    };
    run(&setup)
}

fn measure(seed: u64, point: &Point) -> Measured {
    with_setup(seed, |setup| {
        web::measure(setup, &HostProfile::default(), point, SHORT)
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Every nanosecond since power-on is in the account of each CPU, once: what has passed, and
/// the rest of work that has begun.
fn balanced(system: &mut System) {
    let accounts = system.accounts();
    for (cpu, account) in system.kernel.cpus.iter().zip(accounts) {
        assert_eq!(account.total(), cpu.clock() + cpu.ahead());
    }
}

/// The first way through all of it: a client's connection is opened, a file comes whole, the
/// connection is closed, and the next one follows.
#[test]
fn one_client_fetches_files_from_one_cpu() {
    let point = Point {
        cpus: 1,
        threads: 1,
        machines: 1,
        connections: 1,
        ..Point::new(PolicyKind::Napi)
    };
    with_setup(1, |setup| {
        let profile = HostProfile::default();
        let mut system =
            web::build(setup, &profile, &point).unwrap_or_else(|error| panic!("{error}"));
        for ms in 1..=30 {
            let end = ms * 1_000_000 + 200_000_000;
            system.run(end).unwrap_or_else(|error| panic!("{error}"));
            balanced(&mut system);
        }
        let World::Clients(clients) = &system.world else {
            panic!("clients");
        };
        let seen = clients.seen();
        assert!(seen.files >= 5, "{seen:?}");
        assert_eq!((seen.failed, seen.wrong), (0, 0));
        assert!(seen.bytes >= seen.files * 20 * 1024);
        let account = system.kernel.cpus[0].account();
        // One connection at a time: the CPU waits for the client most of the time, and has
        // used more on the application than on interrupts.
        assert!(account[Activity::Idle] > 0);
        let request = profile.application.request_ns;
        assert!(account[Activity::Application] >= seen.files * request);
        assert!(account[Activity::Interrupt] > 0);
        assert!(account[Activity::Interrupt] < account[Activity::Application]);
    });
}

#[test]
fn the_seed_decides_everything() {
    let point = Point::new(PolicyKind::Knet);
    let first = measure(7, &point);
    assert_eq!(first, measure(7, &point));
    assert_ne!(first, measure(8, &point), "another seed");
}

/// With each policy, MTU, call, size and number of ports the clients get their files, whole
/// and in order, and no CPU's time is lost.
#[test]
fn every_policy_serves_files() {
    let usual = Point::new(PolicyKind::Napi);
    let mut points: Vec<Point> = PolicyKind::ALL
        .into_iter()
        .map(|policy| Point {
            policy,
            ..usual.clone()
        })
        .collect();
    let knet = Point::new(PolicyKind::Knet);
    points.extend([
        Point {
            mtu: 9000,
            ..knet.clone()
        },
        Point {
            call: SendCall::Sendmsg,
            ..knet.clone()
        },
        Point {
            file_bytes: 5 * 1024,
            ..knet.clone()
        },
        Point {
            ports: 4,
            ..knet.clone()
        },
        Point {
            cpus: 8,
            threads: 8,
            machines: 8,
            ..knet
        },
    ]);
    for point in points {
        let found = measure(1, &point);
        assert_eq!(found.failed, 0, "{point:?}");
        assert!(found.rate() > 1000.0, "{point:?}: {}", found.rate());
        assert!(found.window.wire < 0.9, "{point:?}: {}", found.window.wire);
        // Eight CPUs of this kind ask more of the card.
        assert!(found.window.busiest() < 0.9 || point.cpus > 4, "{point:?}");
        for account in &found.window.accounts {
            // A piece of work at either end may reach beyond the window.
            let total = account.total();
            let window = SHORT.measure;
            assert!(total.abs_diff(window) < window / 20, "{point:?}: {total}");
        }
        let copied = found.window.share(Activity::Copy) > 0.0;
        assert_eq!(copied, point.call == SendCall::Sendmsg);
    }
}

/// KNET, section 2.2: with nothing in the way, what several CPUs in the stack gain.
#[test]
fn without_locks_misses_and_latencies_the_speed_up_is_the_models() {
    with_setup(1, |setup| {
        for (cpus, ratio) in [(2, 0.5), (4, 0.25), (4, 1.0), (4, 4.0)] {
            let found = check(setup, &HostProfile::default(), cpus, ratio)
                .unwrap_or_else(|error| panic!("{error}"));
            assert!((found.ratio / ratio - 1.0).abs() < 0.15, "{}", found.ratio);
            assert!(
                found.deviation().abs() < 0.05,
                "{cpus} CPUs, Ta/Te {}: {} instead of {}",
                found.ratio,
                found.speed_up(),
                found.alpha()
            );
            assert!(found.all.window.busiest() < 0.9 && found.all.window.wire < 0.9);
        }
    });
}

/// KNET, section 3: work at interrupt level livelocks, polling does not.
#[test]
fn only_work_at_interrupt_level_livelocks() {
    with_setup(1, |setup| {
        let profile = HostProfile::default();
        for (policy, cpus) in [
            (PolicyKind::Interrupt, 4),
            (PolicyKind::Napi, 1),
            (PolicyKind::Knet, 1),
        ] {
            let rate = |rate| {
                let point = livelock::Point::new(policy, cpus, rate);
                livelock::measure(setup, &profile, &point, SHORT)
                    .unwrap_or_else(|error| panic!("{error}"))
            };
            let most = livelock::loss_free(setup, &profile, policy, cpus, SHORT)
                .unwrap_or_else(|error| panic!("{error}"));
            let flooded = rate(3.0 * most);
            let share = flooded.rate() / most;
            if policy == PolicyKind::Interrupt {
                assert!(share < 0.2, "{share}");
                assert!(flooded.wasted > flooded.offered / 2);
            } else {
                assert!(share > 0.98, "{policy:?}: {share}");
                assert_eq!(flooded.wasted, 0, "drops cost the host nothing");
            }
        }
    });
}

/// A thread that defers looks at its queue between two pieces of the application's work: where CPUs
/// are never idle, the card interrupts for less than one of a hundred frames, and the clients get as
/// much as from threads that arm their queues at once. Where CPUs are idle it interrupts as ever.
#[test]
fn a_busy_host_that_defers_gets_hardly_any_interrupts() {
    let looked = |policy, connections| {
        let point = Point {
            connections,
            ..Point::new(policy)
        };
        measure(1, &point)
    };
    let [paper, deferred] =
        [PolicyKind::Knet, PolicyKind::KnetDeferred].map(|policy| looked(policy, 80));
    let interrupts = [&paper, &deferred].map(|found| found.window.interrupts_in_100());
    assert!(interrupts[0] > 4.0 && interrupts[1] < 1.0, "{interrupts:?}");
    assert!(deferred.mbps() > 0.95 * paper.mbps(), "{}", deferred.mbps());
    assert_eq!(deferred.failed, 0);
    let few = looked(PolicyKind::KnetDeferred, 4);
    let interrupts = few.window.interrupts_in_100();
    assert!(interrupts > 10.0, "{interrupts}");
}

/// A sender that floods its own queue takes nothing from the others': the card drops what it
/// has no room for, and the thread of that queue pauses.
#[test]
fn an_overloaded_queue_does_not_harm_the_others() {
    with_setup(1, |setup| {
        let profile = HostProfile::default();
        let quiet = livelock::Point::new(PolicyKind::Knet, 4, 40_000.0);
        let flooded = livelock::Point {
            flood: Some(60_000.0),
            ..quiet
        };
        let [quiet, flooded] = [quiet, flooded].map(|point| {
            livelock::measure(setup, &profile, &point, SHORT)
                .unwrap_or_else(|error| panic!("{error}"))
        });
        assert!(flooded.offered > flooded.delivered_by.iter().sum());
        for (before, after) in quiet.delivered_by.iter().zip(&flooded.delivered_by) {
            assert!(*after as f64 > 0.98 * *before as f64, "{before}: {after}");
        }
    });
}

/// Datagrams from random machines, as the wire carries them to a card.
fn datagrams(station: [u8; 6], count: usize) -> Vec<Vec<u8>> {
    let mut random = RandomFrames::new(9);
    let mut frame = |number: usize| {
        let source = [10, 77, random.below(256) as u8, random.below(256) as u8];
        let builder = PacketBuilder::ethernet2(PEER, station)
            .ipv4(source, [10, 77, 0, 1], 64)
            .udp(random.below(65_536) as u16, 7);
        let length = 18 + random.below(1454);
        let mut payload = random.bytes(length);
        payload[..8].copy_from_slice(&(number as u64).to_be_bytes());
        let mut frame = Vec::new();
        builder.write(&mut frame, &payload).expect("room");
        frame
    };
    (0..count).map(&mut frame).collect()
}

/// What each queue gets of the same datagrams, with an interrupt for each queue that has any.
fn sorted(
    card: &mut HostCard,
    reception: &mut dyn QueueReception,
    count: usize,
) -> Vec<Vec<Vec<u8>>> {
    let mut queues = vec![Vec::new(); reception.queues()];
    let frames = datagrams(card.station(), count);
    let mut frames = frames.into_iter().peekable();
    let mut now = card.now();
    while frames.peek().is_some() {
        for frame in frames.by_ref().take(32) {
            card.put_on_wire(now, frame);
        }
        now += 2_000_000;
        card.run_to(now, false);
        card.clock().set(now);
        assert!(reception.line(card).expect("the card is there"));
        let raised = reception.acknowledge(card).expect("the card is there");
        for (at, queue) in queues.iter_mut().enumerate() {
            let frames = reception.poll(card, at, 64).expect("the card is well");
            assert_eq!(raised >> at & 1 == 1, !frames.is_empty(), "queue {at}");
            queue.extend(frames);
            reception.rearm(card, at).expect("the card is there");
        }
        now = card.clock().now();
    }
    assert!(
        reception
            .dropped(card)
            .expect("counters")
            .iter()
            .all(|dropped| *dropped == 0)
    );
    queues
}

/// A second opinion on the firmware's queues: the model of them over classic mode gives each
/// frame to the same queue, in the same order.
#[test]
fn the_cards_queues_are_the_models() {
    for spread in [Spread::SourceAddress, Spread::RoundRobin] {
        with_setup(1, |setup| {
            let costs = HostProfile::default().card;
            let start = |queues| {
                let wanted = CardSetup::classic(1500, false).with_queues(queues);
                HostCard::start(setup, wanted, costs).unwrap_or_else(|error| panic!("{error}"))
            };
            let mut card = start(Some(spread.settings(4, 64)));
            let mut queues = CardQueues::of(&mut card);
            let found = sorted(&mut card, &mut queues, 400);
            let mut classic = start(None);
            let mut modelled = ModelledQueues::new(4, spread, 64);
            // The two cards have the same station address.
            assert_eq!(found, sorted(&mut classic, &mut modelled, 400));
            assert!(found.iter().all(|queue| queue.len() > 60), "{spread:?}");
        });
    }
}

/// The page has the figures of longer looks, and a change of the firmware may move them a bit.
const PAGE_IS_OFF_BY: f64 = 0.03;

/// Our figure of a comparison in `docs/knet.md`, as a share.
fn printed(name: &str) -> Option<f64> {
    let page = std::fs::read_to_string(paths::root().join("docs/knet.md")).expect("the page");
    let row = page
        .lines()
        .find(|line| line.starts_with(&format!("| {name} |")))?;
    let [.., ours, _band, _end] = row.split('|').collect::<Vec<_>>()[..] else {
        return None;
    };
    let number = ours.trim().strip_suffix(" %")?;
    Some(number.parse::<f64>().ok()? / 100.0)
}

/// The paper's peak throughputs (figures 5 to 8): each of our policies beside another lies where
/// it does in the paper, and the card is not what limits them.
#[test]
fn the_papers_comparisons_hold() {
    with_setup(1, |setup| {
        let found = figures::compare(setup, &HostProfile::default(), Duration::QUICK, 4)
            .unwrap_or_else(|error| panic!("{error}"));
        for one in &found {
            let (name, change) = (one.comparison.name, one.change());
            assert!(one.is_within(), "{name}: {change}");
            let printed = printed(name).unwrap_or_else(|| panic!("docs/knet.md: {name}"));
            assert!(
                (printed - change).abs() < PAGE_IS_OFF_BY,
                "{name}: {change}"
            );
            for runs in [&one.found, &one.with] {
                assert!(runs.most(|run| run.window.busiest()) < 0.9, "{name}");
                assert!(runs.most(|run| run.window.wire) < 0.9, "{name}");
                assert_eq!(runs.most(|run| (run.failed + run.dropped) as f64), 0.0);
            }
        }
        let calibrated = found.iter().filter(|one| one.comparison.calibrated);
        assert_eq!(calibrated.count(), HostProfile::default().calibrated.len());
    });
}
