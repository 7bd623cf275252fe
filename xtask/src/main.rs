//! `cargo xtask`: the entry point to all commands of tigon-rs.
#![forbid(unsafe_code)]

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use testbed::firmware::choice::{self, Placement, Variant};
use testbed::{interrupt, paths, progress, setup};
use verbs::Use;
use xtask::{
    bench, build, doc, eta, explore, extension, flash, gdb, guest, man, new_variant, qemu_run,
    repeat, sim_run, soak, test, trace, verify,
};

const FIRMWARE: &str = "Firmware";
const OUTPUT: &str = "Output";

/// Builds, runs, measures and tests tigon-rs.
///
/// The options here may stand before or after the verb; each verb's help lists those that it
/// accepts.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    /// Firmware variant: the division of its handlers
    #[arg(long, value_enum, env = choice::VARIANT, default_value_t, help_heading = FIRMWARE)]
    variant: Variant,
    /// Placement of its hot code and state
    #[arg(long, value_enum, env = choice::PLACEMENT, default_value_t, help_heading = FIRMWARE)]
    placement: Placement,
    /// Show all build output: cargo's messages, the firmware's sizes
    #[arg(long, help_heading = OUTPUT)]
    verbose: bool,
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
    /// Boot a Linux guest with the card in it, and open a shell there
    #[command(after_help = "Examples:\n  cargo xtask guest\n  \
        cargo xtask guest --command 'ping -c 3 10.77.0.2'\n  \
        cargo xtask guest --router --command 'ping -c 3 10.77.2.1'\n  \
        cargo xtask guest --firmware original.bin")]
    Guest(guest::Arguments),
    /// Serve pages through sockets without the kernel, with a shell at the other end of the wire
    #[command(after_help = "Examples:\n  cargo xtask eta\n  \
        cargo xtask eta --idle sleep --command 'curl -s http://10.77.0.1/eta.md'")]
    Eta(eta::Arguments),
    /// Build the firmware and install it in a card's own EEPROM
    #[command(after_help = "Examples:\n  cargo xtask flash --eeprom card.eeprom\n  \
        cargo xtask flash --eeprom card.eeprom --slot 1 --confirmed\n  \
        cargo xtask flash --socket /tmp/card.sock\n\
        Looking, verifying, backup and restore: tigonctl flash --help")]
    Flash(flash::Arguments),
    /// Debug the firmware with gdb, on a card that carries traffic
    #[command(after_help = "Examples:\n  cargo xtask gdb\n  \
        cargo xtask gdb --break receive_complete\n  \
        cargo xtask gdb --break mailbox -- -batch -ex bt -ex 'tigon events'\n  \
        cargo xtask gdb --serve 3333\n  \
        cargo xtask gdb --sim --break send_data_ready, and there: reverse-continue\n  \
        cargo xtask gdb --sim --seed 4711")]
    Gdb(gdb::Arguments),
    /// Measure throughput, and the limits of this machine
    #[command(
        after_help = "Examples:\n  cargo xtask bench --quick --profile all\n  \
        cargo xtask bench --experiment receive --datagram 18\n  \
        cargo xtask bench --sensitivity\n  \
        cargo xtask bench --engine qemu\n  \
        cargo xtask bench --engine qemu --guest"
    )]
    Bench(bench::Arguments),
    /// Record handlers, transfers and frames in the card over time
    #[command(after_help = "Examples:\n  cargo xtask trace\n  \
        cargo xtask trace --experiment send --datagram 18 --from 4000 --to 4200")]
    Trace(trace::Arguments),
    /// Run the firmware under thousands of random schedules of both CPUs
    #[command(after_help = "Examples:\n  cargo xtask explore --schedules 10000\n  \
        cargo xtask explore --seed 4711")]
    Explore(explore::Arguments),
    /// Verify the frame pipeline's state machines with Spin
    #[command(after_help = "Examples:\n  cargo xtask verify\n  cargo xtask verify --quick")]
    Verify(verify::Arguments),
    /// Run two guests under load for minutes, and account for every frame
    #[command(after_help = "Example: cargo xtask soak --guest --minutes 10")]
    Soak(soak::Arguments),
    /// Create a firmware variant
    #[command(after_help = "Example: cargo xtask new-variant count-arp --from parallel")]
    NewVariant(new_variant::Arguments),
    /// Create an extension of the running card, check it, build it, try it out
    #[command(after_help = "Examples:\n  cargo xtask extension new hello\n  \
        cargo xtask extension check hello\n  \
        cargo xtask extension run hello --guard udp:4711\n  \
        cargo xtask extension build hello --out hello.spine\n  \
        cargo xtask extension sign hello.spine --key ours.key\n  \
        cargo xtask extension list\n  \
        cargo xtask extension load hello --guard udp:4711 --attach tigon0.status\n  \
        cargo xtask extension cut --cuts 20000\n\
        More on a card that carries frames: tigonctl spine --help")]
    Extension(extension::Arguments),
    /// Build the book of docs/, and the pages of every crate
    #[command(
        after_help = "Examples:\n  cargo xtask doc\n  cargo xtask doc --book\n  \
        cargo xtask doc --readme --report target/reports/qemu-run.json"
    )]
    Doc(doc::Arguments),
    /// Write the manual pages of this command
    #[command(after_help = "Example: cargo xtask man --out ~/.local/share/man/man1")]
    Man(man::Arguments),
    /// Run all tests
    #[command(after_help = "Examples:\n  cargo xtask test\n  \
        cargo xtask test --no-lint --package tigon2-model")]
    Test(test::Arguments),
    /// Repeat a command beside busy loops, and count its failures
    #[command(after_help = "Examples:\n  \
        cargo xtask repeat --times 1000 --hogs 3 -- \
            test --no-lint -p integration-tests -- the_send_ring_wraps_three_times\n  \
        cargo xtask repeat --times 50 -- test --guest -- loaded_and_unloaded_twenty_times")]
    Repeat(repeat::Arguments),
}

/// What a verb does with an option of all.
fn use_of(verb: &str, option: &str) -> Use {
    let builds_the_users_choice = matches!(
        verb,
        "build"
            | "qemu-run"
            | "sim-run"
            | "guest"
            | "flash"
            | "gdb"
            | "bench"
            | "trace"
            | "explore"
            | "soak"
            | "test"
    );
    let takes = match option {
        // Trace and explore build silently, and build shows all output.
        "verbose" => builds_the_users_choice && !matches!(verb, "build" | "trace" | "explore"),
        _ => builds_the_users_choice,
    };
    if takes { Use::Takes } else { Use::Refuses }
}

impl Cli {
    fn description() -> clap::Command {
        verbs::spread(Self::command(), use_of)
    }

    fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let description = Self::description();
        let words = verbs::behind_the_verb(&description, words);
        let matches = description.try_get_matches_from(words)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        if let Some((_, verb)) = matches.subcommand() {
            cli.variant = verbs::value(verb, "variant").unwrap_or_default();
            cli.placement = verbs::value(verb, "placement").unwrap_or_default();
            cli.verbose = verbs::value(verb, "verbose").unwrap_or_default();
        }
        Ok(cli)
    }
}

fn main() -> ExitCode {
    let cli = Cli::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    choice::choose(cli.variant, cli.placement);
    if cli.verbose {
        progress::tell_everything();
    }
    let begun = interrupt::install().map_err(anyhow::Error::from);
    let begun = begun.and_then(|()| Ok(paths::find()?));
    let result = begun.and_then(|_| {
        match &cli.verb {
            Verb::Setup => setup::ensure(setup::EVERYTHING),
            Verb::Build => build::run(),
            Verb::QemuRun(arguments) => qemu_run::run(arguments),
            Verb::SimRun(arguments) => sim_run::run(arguments),
            // The guest's command has an exit status of its own.
            Verb::Guest(arguments) => return guest::run(arguments),
            Verb::Eta(arguments) => eta::run(arguments),
            Verb::Flash(arguments) => flash::run(arguments),
            Verb::Gdb(arguments) => gdb::run(arguments),
            Verb::Bench(arguments) => bench::run(arguments),
            Verb::Trace(arguments) => trace::run(arguments),
            Verb::Explore(arguments) => explore::run(arguments),
            Verb::Verify(arguments) => verify::run(arguments),
            Verb::Soak(arguments) => soak::run(arguments),
            Verb::NewVariant(arguments) => new_variant::run(arguments),
            Verb::Extension(arguments) => extension::run(arguments),
            Verb::Doc(arguments) => doc::run(arguments),
            Verb::Man(arguments) => man::run(Cli::description(), arguments),
            Verb::Test(arguments) => test::run(arguments),
            Verb::Repeat(arguments) => repeat::run(arguments),
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn read(line: &str) -> Result<Cli, clap::Error> {
        Cli::read(line.split_whitespace().map(OsString::from))
    }

    fn help(verb: &str) -> String {
        let line = format!("xtask {verb} --help");
        read(&line).expect_err("help").to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::description().debug_assert();
    }

    #[test]
    fn a_variant_is_named_in_front_of_the_verb_or_behind_it() {
        for line in [
            "xtask --variant uniprocessor --placement=sram-data qemu-run --count 3",
            "xtask qemu-run --count 3 --variant uniprocessor --placement sram-data",
            "xtask --variant uniprocessor gdb --placement sram-data -- -ex --variant",
            "xtask --placement sram-data build --variant=uniprocessor",
        ] {
            let cli = read(line).expect(line);
            assert_eq!(cli.variant, Variant::Uniprocessor, "{line}");
            assert_eq!(cli.placement, Placement::SramData, "{line}");
        }
        let none = read("xtask sim-run").expect("no choice");
        assert_eq!(none.placement, Placement::default());
        assert!(read("xtask sim-run --verbose").expect("words").verbose);
        let nobody = read("xtask --variant nobody qemu-run").expect_err("no such variant");
        assert_eq!(nobody.kind(), ErrorKind::InvalidValue);
    }

    #[test]
    fn a_verb_without_a_use_for_a_variant_neither_shows_nor_takes_it() {
        for verb in ["setup", "new-variant count-arp", "doc"] {
            let name = verb.split(' ').next().unwrap_or_default();
            let help = help(name);
            for option in ["--variant", "--placement", "--verbose"] {
                assert!(!help.contains(&format!("{option} ")), "{help}");
                let value = if option == "--verbose" { "" } else { "scratch" };
                for line in [
                    format!("xtask {option} {value} {verb}"),
                    format!("xtask {verb} {option} {value}"),
                ] {
                    let error = read(&line).expect_err(&line);
                    assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{line}");
                    let said = error.to_string();
                    assert!(
                        said.contains(&format!("Usage: cargo xtask {name}")),
                        "{said}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_verbs_own_options_come_first() {
        let help = help("qemu-run");
        let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
        assert!(place("--pcap-out") < place("Firmware:"));
        assert!(place("Firmware:") < place("--variant"));
        assert!(place("--placement") < place("--verbose"));
    }
}
