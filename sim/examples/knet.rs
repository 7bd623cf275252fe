//! Measures a point of the KNET experiments, as a quick check after a change:
//! `knet IMAGE web POLICY[,POLICY...] [KEY=VALUE...]` or
//! `knet IMAGE udp POLICY[,POLICY...] RATE[,RATE...] [KEY=VALUE...]`, with `mlfrr` instead of
//! `udp` at shares of the loss-free rate; `knet IMAGE model -` compares with the paper's model;
//! `knet IMAGE table -` prints the paper's figures beside ours.
//! Keys of `web`: cpus, threads, machines, connections, bytes, mtu, ports, copy (1: sendmsg).
//! Keys of both: full (1: as long as for figures), ideal (1: without locks, misses, latencies),
//! warm_up_ms, request, segment, miss, seed and profile (a file).

use std::collections::BTreeMap;
use tigon2_model::Board;
use tigon2_sim::hosts::account::Activity;
use tigon2_sim::hosts::policy::PolicyKind;
use tigon2_sim::hosts::profile::HostProfile;
use tigon2_sim::hosts::web::SendCall;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::knet::measured::Window;
use tigon2_sim::workload::knet::web::Duration;
use tigon2_sim::workload::knet::{check, figures, livelock, web};
use tigon2_sim::workload::testbench::Setup;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [image, what, policies, rest @ ..] = &arguments[..] else {
        panic!("knet IMAGE web|udp POLICIES [RATES] [KEY=VALUE...]");
    };
    let image = std::fs::read(image).expect("a readable image");
    let keys: BTreeMap<&str, &str> = rest.iter().filter_map(|one| one.split_once('=')).collect();
    let number = |key: &str, default: usize| {
        keys.get(key)
            .map_or(default, |value| value.parse().expect(key))
    };
    let mut profile = keys
        .get("profile")
        .map_or_else(HostProfile::default, |path| {
            let text = std::fs::read_to_string(path).expect("a readable profile");
            HostProfile::from_toml(&text).expect("a profile")
        });
    if number("ideal", 0) == 1 {
        profile = profile.ideal();
    }
    let set = |place: &mut u64, key: &str| *place = number(key, *place as usize) as u64;
    set(&mut profile.application.request_ns, "request");
    set(&mut profile.packet.segment_ns, "segment");
    set(&mut profile.cache.connection_miss_ns, "miss");
    set(&mut profile.cache.listener_miss_ns, "listener_miss");
    set(&mut profile.locks.listener_ns, "listener");
    set(&mut profile.kernel.wake_ns, "wake");
    set(&mut profile.kernel.network_wake_ns, "network_wake");
    set(&mut profile.kernel.switch_ns, "switch");
    set(&mut profile.locks.ring_ns, "ring");
    set(&mut profile.locks.accept_ns, "accept");
    set(&mut profile.kernel.interrupt_ns, "interrupt");
    set(&mut profile.application.copy_ps_per_byte, "copy_ps");
    set(&mut profile.cache.stack_miss_ns, "stack_miss");
    set(&mut profile.cache.ring_miss_ns, "ring_miss");
    set(&mut profile.cache.code_miss_ns, "code");
    set(&mut profile.packet.close_ns, "close");
    set(&mut profile.packet.large_buffer_ns, "large");
    set(&mut profile.packet.driver_ns, "driver");
    set(&mut profile.packet.protocol_ns, "protocol");
    set(&mut profile.application.accept_ns, "accept_call");
    set(&mut profile.application.read_ns, "read");
    set(&mut profile.application.send_ns, "send");
    let mut setup = Setup::new(Board::default(), Parameters::default(), &image);
    setup.seed = number("seed", 1) as u64;
    let duration = if number("full", 0) == 1 {
        Duration::FULL
    } else {
        Duration::QUICK
    };
    let duration = Duration {
        warm_up: number("warm_up_ms", (duration.warm_up / 1_000_000) as usize) as u64 * 1_000_000,
        ..duration
    };
    if what == "table" {
        let all = figures::compare(&setup, &profile, duration, number("seeds", 4) as u64)
            .expect("it runs");
        for found in all {
            let paper = found.comparison.paper;
            println!(
                "{:48} {:6.1} and {:6.1} Mb/s: {:+5.1} %, paper {}, {} [{:+.0}, {:+.0}]{}; idle {:.0} %, card {:.2}, wire {:.2}",
                found.comparison.name,
                found.found.mbps(),
                found.with.mbps(),
                100.0 * found.change(),
                paper.map_or("-".into(), |paper| format!("{:+.0} %", 100.0 * paper)),
                if found.is_within() {
                    "within"
                } else {
                    "OUTSIDE"
                },
                100.0 * found.comparison.band.0,
                100.0 * found.comparison.band.1,
                if found.comparison.calibrated {
                    ", calibrated"
                } else {
                    ""
                },
                100.0 * found.found.mean(|run| run.window.share(Activity::Idle)),
                found.found.most(|run| run.window.busiest()),
                found.found.most(|run| run.window.wire),
            );
        }
        return;
    }
    if what == "model" {
        for cpus in [1, 2, 4, 8] {
            for ratio in [0.25, 0.5, 1.0, 2.0, 4.0] {
                let found = check::check(&setup, &profile, cpus, ratio).expect("it runs");
                println!(
                    "{cpus} CPUs, Ta/Te {:.3}: {:.1} and {:.1} Mb/s, speed-up {:.3}, model {:.3} ({:+.1} %), \
                     card {:.2}, wire {:.2}",
                    found.ratio,
                    found.one.mbps(),
                    found.all.mbps(),
                    found.speed_up(),
                    found.alpha(),
                    100.0 * found.deviation(),
                    found.all.window.busiest(),
                    found.all.window.wire
                );
            }
        }
        return;
    }
    let policies = policies.split(',').map(|name| {
        let mut all = PolicyKind::ALL.into_iter();
        all.find(|kind| kind.name() == name).expect("a policy")
    });
    for policy in policies {
        let cpus = number("cpus", 4);
        if what == "mlfrr" {
            let rate = livelock::loss_free(&setup, &profile, policy, cpus, duration);
            let rate = rate.expect("it runs");
            println!("{:9} MLFRR {rate:.0}/s", policy.name());
            for percent in [10, 50, 90, 100, 110, 150, 200, 300] {
                let rate = rate * f64::from(percent) / 100.0;
                let point = livelock::Point::new(policy, cpus, rate);
                let found = livelock::measure(&setup, &profile, &point, duration);
                let found = found.expect("it runs");
                let (rate, card) = (found.rate(), found.window.busiest());
                println!(
                    "    {percent} %: {rate:.0}/s, wasted {}, card {card:.2}",
                    found.wasted
                );
            }
            // All senders at 90 % of their share, then one at three times its share.
            let quiet = livelock::Point::new(policy, cpus, 0.9 * rate);
            let flood = Some(3.0 * rate / cpus as f64);
            for point in [quiet, livelock::Point { flood, ..quiet }] {
                let found = livelock::measure(&setup, &profile, &point, duration);
                let found = found.expect("it runs");
                println!("    flood {:?}: {:?}", point.flood, found.delivered_by);
            }
            continue;
        }
        if what == "udp" {
            let rates = rest.first().expect("rates");
            for rate in rates.split(',') {
                let rate = rate.parse().expect("a rate");
                let point = livelock::Point::new(policy, cpus, rate);
                let found = livelock::measure(&setup, &profile, &point, duration).expect("it runs");
                println!(
                    "{:9} offered {} delivered {} wasted {}: {:.0}/s",
                    policy.name(),
                    found.offered,
                    found.delivered,
                    found.wasted,
                    found.rate()
                );
                report(&found.window);
            }
            continue;
        }
        let usual = web::Point::new(policy);
        let point = web::Point {
            cpus,
            threads: number("threads", cpus),
            machines: number("machines", cpus.max(usual.machines)),
            connections: number("connections", usual.connections),
            file_bytes: number("bytes", usual.file_bytes),
            mtu: number("mtu", usual.mtu.into()) as u16,
            ports: number("ports", 1) as u16,
            call: if number("copy", 0) == 1 {
                SendCall::Sendmsg
            } else {
                SendCall::Sendfile
            },
            ..usual
        };
        let start = std::time::Instant::now();
        let found = web::measure(&setup, &profile, &point, duration).expect("it runs");
        println!(
            "{:9} {:.0} files/s, {:.1} Mb/s, {:.0} us, failed {}, expired {}, dropped {}, \
             listener {:.3}, Ta/Te {:.3}, {:.1} s",
            policy.name(),
            found.rate(),
            found.mbps(),
            found.latency_us,
            found.failed,
            found.expired,
            found.dropped,
            found.listener_wait,
            found.window.ratio(),
            start.elapsed().as_secs_f64(),
        );
        report(&found.window);
    }
}

fn report(window: &Window) {
    println!(
        "    card {:.2?}, wire {:.3}, interrupts {:.0}/s, {:.2} in 100 frames, sent {:.0}/s",
        window.card,
        window.wire,
        window.interrupts as f64 / window.seconds,
        window.interrupts_in_100(),
        window.frames as f64 / window.seconds
    );
    for (at, account) in window.accounts.iter().enumerate() {
        print!("    {at}:");
        for activity in Activity::ALL {
            print!(
                " {} {:.1}",
                activity.name(),
                100.0 * account.share(activity)
            );
        }
        println!();
    }
}
