//! Tests with an unmodified Linux guest as the judge of firmware and card.
//!
//! `cargo xtask test --guest` prepares what they need and runs them; arguments after `--` select
//! tests by name. Kernel and driver are Debian's. Besides each story's own checks, the guest's
//! kernel log must stay free of complaints.

mod cable;
mod driver;
mod filters;
mod interrupts;
mod kvm;
mod neighbours;
mod rings;
mod statistics;
mod tools;
mod traffic;
mod vfio;

use integration_tests::guest::GuestStage;
use integration_tests::guest::neighbours::{GuestAndDriver, Routed, TwoGuests};
use integration_tests::guest::playbill::{self, Act, Story};
use std::process::ExitCode;

/// Names stories after their functions.
macro_rules! stories {
    ($($module:ident :: $story:ident),* $(,)?) => {
        vec![$((stringify!($story), $module::$story as fn(&mut _))),*]
    };
}

fn main() -> ExitCode {
    if std::env::var_os("TIGON_GUEST_KERNEL").is_none() {
        println!("guest: none of these stories is told here, but by cargo xtask test --guest");
        return ExitCode::SUCCESS;
    }
    // Words for libtest, such as --nocapture, mean nothing here.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    playbill::run(acts(), &words)
}

/// The longest first: two run at once.
fn acts() -> Vec<Act> {
    let one_guest: Vec<Story<GuestStage>> = stories![
        driver::the_driver_finds_a_card_that_it_knows,
        tools::ethtool_tells_what_the_driver_offers,
        tools::the_link_is_negotiated_anew,
        traffic::ping_of_every_size,
        traffic::tcp_and_udp_with_checksums_by_the_card,
        traffic::datagrams_come_in_run_after_run,
        traffic::offloads_are_switched_off_and_on,
        traffic::jumbo_frames_and_back,
        traffic::a_vlan_is_tagged_on_the_wire,
        statistics::the_guest_counts_what_the_wire_saw,
    ];
    let another: Vec<Story<GuestStage>> = stories![
        filters::a_group_is_joined_and_left,
        filters::promiscuous_and_all_multicast,
        filters::the_station_address_is_changed,
        interrupts::a_storm_of_small_frames,
        interrupts::masked_interrupts_are_made_up_for,
        rings::a_guest_that_cannot_follow,
        rings::a_wire_that_does_not_take,
        cable::the_cable_is_pulled_while_traffic_flows,
        driver::up_and_down_a_hundred_times,
        driver::loaded_and_unloaded_twenty_times,
    ];
    let two_guests: Vec<Story<TwoGuests>> = stories![
        neighbours::two_guests_talk,
        neighbours::two_guests_count_the_same,
        neighbours::a_short_soak_with_checked_payloads,
        neighbours::a_flood_of_short_datagrams,
    ];
    let with_our_driver: Vec<Story<GuestAndDriver>> =
        stories![neighbours::a_guest_talks_with_our_driver];
    let routed: Vec<Story<Routed>> = stories![neighbours::a_guest_routes_between_two];
    let vfio: Vec<Story<vfio::BehindIommu>> = stories![
        vfio::our_driver_works_through_the_kernels_vfio,
        vfio::acenic_takes_over_from_our_driver,
    ];
    let useless_kvm: Vec<Story<kvm::UselessKvm>> = stories![
        kvm::kvm_that_is_refused_is_done_without,
        kvm::kvm_that_hangs_is_given_up,
    ];
    vec![
        Act::new("one guest", one_guest),
        Act::new("another guest", another),
        Act::new("two guests", two_guests),
        Act::new("guest and driver", with_our_driver),
        Act::new("router", routed),
        Act::new("kernel vfio", vfio),
        Act::new("useless kvm", useless_kvm),
    ]
}
