//! `cargo xtask`: the door to every command of tigon-rs.
#![forbid(unsafe_code)]

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use xtask::firmware::choice::{self, Placement, Variant};
use xtask::{
    bench, build, doc, explore, flash, gdb, guest, interrupt, man, new_variant, paths, qemu_run,
    setup, sim_run, soak, test, trace,
};

/// Builds, runs, measures and tests tigon-rs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    /// How the firmware's handlers are divided
    #[arg(long, global = true, value_enum, env = choice::VARIANT, default_value_t)]
    variant: Variant,
    /// Where its hot code and state lie
    #[arg(long, global = true, value_enum, env = choice::PLACEMENT, default_value_t)]
    placement: Placement,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Install the system packages that the other commands need
    #[command(after_help = "Example: cargo xtask setup")]
    Setup,
    /// Build the firmware, check its instructions, print its sizes
    #[command(after_help = "Example: cargo xtask build --variant parallel")]
    Build,
    /// Run real traffic through the card under QEMU and report on it
    #[command(after_help = "Examples:\n  cargo xtask qemu-run\n  \
        cargo xtask qemu-run --interactive\n  \
        cargo xtask qemu-run --interactive --eeprom card.eeprom\n  \
        cargo xtask qemu-run --pcap in.pcap --pcap-out out.pcap")]
    QemuRun(qemu_run::Arguments),
    /// Run traffic through the card in the simulator, in one process
    #[command(after_help = "Examples:\n  cargo xtask sim-run --count 1000\n  \
        cargo xtask sim-run --pcap in.pcap --pcap-out out.pcap")]
    SimRun(sim_run::Arguments),
    /// Boot a Linux guest with the card in it, and give a shell there
    #[command(after_help = "Examples:\n  cargo xtask guest\n  \
        cargo xtask guest --command 'ping -c 3 10.77.0.2'\n  \
        cargo xtask guest --router --command 'ping -c 3 10.77.2.1'\n  \
        cargo xtask guest --firmware original.bin")]
    Guest(guest::command::Arguments),
    /// Build the firmware and install it in a card's own EEPROM
    #[command(after_help = "Examples:\n  cargo xtask flash --eeprom card.eeprom\n  \
        cargo xtask flash --eeprom card.eeprom --slot 1 --confirmed\n  \
        cargo xtask flash --socket /tmp/card.sock\n\
        Looking, verifying, backup and restore: tigonctl flash --help")]
    Flash(flash::Arguments),
    /// Stop in the firmware: gdb on a card that carries traffic
    #[command(after_help = "Examples:\n  cargo xtask gdb\n  \
        cargo xtask gdb --break receive_complete\n  \
        cargo xtask gdb --break mailbox -- -batch -ex bt -ex 'tigon events'\n  \
        cargo xtask gdb --serve 3333\n  \
        cargo xtask gdb --sim --break send_data_ready, and there: reverse-continue\n  \
        cargo xtask gdb --sim --seed 4711")]
    Gdb(gdb::Arguments),
    /// Measure throughput beside what this machine could carry at most
    #[command(
        after_help = "Examples:\n  cargo xtask bench --quick --profile all\n  \
        cargo xtask bench --experiment receive --datagram 18\n  \
        cargo xtask bench --sensitivity\n  \
        cargo xtask bench --engine qemu\n  \
        cargo xtask bench --engine qemu --guest"
    )]
    Bench(bench::Arguments),
    /// Show what happens in the card, when, and to which frame
    #[command(after_help = "Examples:\n  cargo xtask trace\n  \
        cargo xtask trace --experiment send --datagram 18 --from 4000 --to 4200")]
    Trace(trace::Arguments),
    /// Run the firmware under thousands of random schedules of both CPUs
    #[command(after_help = "Examples:\n  cargo xtask explore --schedules 10000\n  \
        cargo xtask explore --seed 4711")]
    Explore(explore::Arguments),
    /// Load two guests for minutes and account for every frame
    #[command(after_help = "Example: cargo xtask soak --guest --minutes 10")]
    Soak(soak::Arguments),
    /// Make a firmware variant of your own
    #[command(after_help = "Example: cargo xtask new-variant count-arp --from parallel")]
    NewVariant(new_variant::Arguments),
    /// Make the book of docs/, and the pages of every crate
    #[command(after_help = "Examples:\n  cargo xtask doc\n  cargo xtask doc --book")]
    Doc(doc::Arguments),
    /// Write the manual pages of this command
    #[command(after_help = "Example: cargo xtask man --out ~/.local/share/man/man1")]
    Man(man::Arguments),
    /// Run every test there is
    #[command(after_help = "Examples:\n  cargo xtask test\n  \
        cargo xtask test --no-lint --package tigon2-model")]
    Test(test::Arguments),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    choice::choose(cli.variant, cli.placement);
    let begun = interrupt::install().map_err(anyhow::Error::from);
    let begun = begun.and_then(|()| Ok(paths::find()?));
    let result = begun.and_then(|_| {
        match &cli.verb {
            Verb::Setup => setup::ensure(setup::EVERYTHING),
            Verb::Build => build::run(),
            Verb::QemuRun(arguments) => qemu_run::run(arguments),
            Verb::SimRun(arguments) => sim_run::run(arguments),
            // The guest's command has an exit status of its own.
            Verb::Guest(arguments) => return guest::command::run(arguments),
            Verb::Flash(arguments) => flash::run(arguments),
            Verb::Gdb(arguments) => gdb::run(arguments),
            Verb::Bench(arguments) => bench::run(arguments),
            Verb::Trace(arguments) => trace::run(arguments),
            Verb::Explore(arguments) => explore::run(arguments),
            Verb::Soak(arguments) => soak::run(arguments),
            Verb::NewVariant(arguments) => new_variant::run(arguments),
            Verb::Doc(arguments) => doc::run(arguments),
            Verb::Man(arguments) => man::run(Cli::command(), arguments),
            Verb::Test(arguments) => test::run(arguments),
        }
        .map(|()| 0)
    });
    // Whatever else failed on the way to the end, that was the reason.
    if let (Err(_), Some(status)) = (&result, interrupt::status()) {
        eprintln!("error: {}", interrupt::Interrupted);
        return ExitCode::from(status);
    }
    match result {
        Ok(status) => ExitCode::from(status),
        // One line, the causes behind it.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
