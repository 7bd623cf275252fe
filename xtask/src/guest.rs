//! `cargo xtask guest`: a Linux machine with the card in it.

use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testbed::card::Card;
use testbed::guest::peer::Peer;
use testbed::guest::topology::Topology;
use testbed::guest::{Guest, GuestOptions, GuestTools, peer};
use testbed::net::namespace;
use testbed::qemu_build::Target;
use testbed::setup::{self, Need};
use testbed::tools::{Tools, beside_qemu};
use testbed::{firmware, interrupt};

/// How many cards fit into a guest.
const MOST_CARDS: i64 = 4;

/// A command of the user's own takes as long as it takes.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// How often its output is passed on.
const LOOK: Duration = Duration::from_millis(50);

/// The guests to start, and their network.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use this firmware image (drivers' load format) instead of the project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// Try KVM, and fall back to TCG where KVM does not work
    #[arg(long)]
    pub kvm: bool,
    /// Run this command in the guest instead of a shell, and exit with its status
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// Peer at the other end of the wire
    #[arg(long, value_enum, default_value_t = Peer::Auto, conflicts_with_all = ["two", "router"])]
    pub peer: Peer,
    /// Cards in the guest, each with a peer of its own
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["two", "router"],
        value_parser = clap::value_parser!(u8).range(1..=MOST_CARDS))]
    pub cards: u8,
    /// Start a second guest at the other end of the wire
    #[arg(long, conflicts_with = "router")]
    pub two: bool,
    /// Start a second guest, and a third with two cards as a router between them
    #[arg(long)]
    pub router: bool,
    /// The guest's memory in MB
    #[arg(long, value_name = "MB", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(128..=16384))]
    pub memory: u32,
}

/// Starts it; the exit status is that of `--command`.
pub fn run(arguments: &Arguments) -> Result<u8> {
    // A file that is no image is found out before anything takes time.
    firmware::file::judge(arguments.firmware.as_ref())?;
    if arguments.peer == Peer::Linux {
        namespace::privileged()?;
    }
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Guest, Need::Traffic])?;
    // Both programs of QEMU at once: their builds have most in common.
    beside_qemu(&[Target::Mips, Target::X86_64])?;
    let tools = Tools::build()?;
    let guests = GuestTools::build()?;
    let firmware = tools.firmware.clone().or_file(arguments.firmware.as_ref());
    let options = GuestOptions {
        firmware: firmware.image()?,
        memory_mb: arguments.memory,
        kvm: arguments.kvm,
        interactive: arguments.command.is_none(),
        ..GuestOptions::default()
    };
    if arguments.two || arguments.router {
        several(&tools, &guests, &options, arguments)
    } else {
        one(&tools, &guests, options, arguments)
    }
}

/// One guest, its cards and their peers.
fn one(
    tools: &Tools,
    guests: &GuestTools,
    mut options: GuestOptions,
    arguments: &Arguments,
) -> Result<u8> {
    let start = Instant::now();
    let peers = peer::start(tools, arguments.peer, arguments.cards)?;
    options.cards = peers.cards().map(Card::socket).collect();
    say(start, "cards started");
    let guest = Guest::start(guests, &options)?;
    say(start, "kernel booted, agent there");
    guest.load_driver(usize::from(arguments.cards))?;
    say(start, "acenic loaded, firmware running");
    let mut hints = Vec::new();
    for number in 0..arguments.cards {
        let (own, other) = peer::addresses(number);
        let device = format!("eth{number}");
        guest.bring_up(&device, &format!("{own}/24"))?;
        say(start, &format!("{device} {own} up, link there"));
        hints.push(format!(
            "{device} is {own}; at the other end of its wire: {other} ({})",
            peers.name(number)
        ));
    }
    finish(&guest, arguments, start, &hints)
}

/// Two guests back to back, or with a router between them.
fn several(
    tools: &Tools,
    guests: &GuestTools,
    options: &GuestOptions,
    arguments: &Arguments,
) -> Result<u8> {
    let start = Instant::now();
    let topology = if arguments.two {
        Topology::two(tools, guests, options)?
    } else {
        Topology::router(tools, guests, options)?
    };
    let own = topology.west.addresses.join(" ");
    let other = topology.east.addresses.join(" ");
    let between = topology.router.as_ref().map_or_else(String::new, |router| {
        format!(", behind a router ({})", router.addresses.join(" and "))
    });
    say(start, &format!("{own} and {other} up, link there"));
    let hints = [format!(
        "eth0 is {own}; the other guest is {other}{between}"
    )];
    finish(&topology.west.guest, arguments, start, &hints)
}

/// The shell or the command, until its end.
fn finish(guest: &Guest, arguments: &Arguments, start: Instant, hints: &[String]) -> Result<u8> {
    if let Some(command) = &arguments.command {
        return follow(guest, command);
    }
    say(start, "shell");
    let banner = format!(
        "\n{}\nLeave with exit or Ctrl-A x; everything goes away then.\n",
        hints.join("\n")
    );
    guest.put("/tmp/banner", banner.as_bytes(), 0o644)?;
    guest.sh("cat /tmp/banner > /run/shell")?;
    // The shell has the terminal: Ctrl-C is for what runs in it.
    while guest.is_running()? {
        interrupt::sleep(LOOK)?;
    }
    println!();
    Ok(0)
}

/// Runs a command, passing on what it says as it says it.
fn follow(guest: &Guest, command: &str) -> Result<u8> {
    let job = guest.spawn(command)?;
    let end = Instant::now() + LONG;
    loop {
        let ended = job.wait_more(LOOK)?;
        let (output, complaints) = match &ended {
            Some(ended) => (
                ended.stdout.clone().into_bytes(),
                ended.stderr.clone().into_bytes(),
            ),
            None => job.take(),
        };
        // Nobody may be listening any more, as behind `| head`.
        let _ = std::io::stdout().write_all(&output);
        let _ = std::io::stdout().flush();
        let _ = std::io::stderr().write_all(&complaints);
        if let Some(ended) = ended {
            return Ok(u8::try_from(ended.status).unwrap_or(u8::MAX));
        }
        anyhow::ensure!(Instant::now() < end, "{command}: still not done");
    }
}

/// One line of what happens, with the time since the start.
fn say(start: Instant, what: &str) {
    println!("guest: {:5.1} s  {what}", start.elapsed().as_secs_f64());
}
