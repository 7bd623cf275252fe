//! The command line of `tigonctl spine video`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use smoltcp::wire::EthernetAddress;
use spine_linker::video::{Screen, WINDOWS, Window};

/// What to do with videos.
#[derive(Debug, Subcommand)]
pub enum VideoAction {
    /// Open a screen, place windows on it, and write what it shows to a file at Ctrl-C.
    Show(ShowOptions),
    /// Be the server: send test cards over the wire to the card.
    Serve(ServeOptions),
}

/// The screen.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// The domain of the video extension.
    pub domain: u32,
    /// Width, height and bits of a pixel: 8, 16 or 32.
    #[arg(long, default_value = "640x480x16")]
    pub screen: Screen,
    /// Width, height, column and line of a window, as 320x240+10-5; the first is window 0.
    #[arg(long = "window", value_name = "WINDOW", required = true)]
    pub windows: Vec<Window>,
    /// The picture's file.
    #[arg(long, value_name = "FILE")]
    pub png: PathBuf,
    /// End after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// How long to wait for a window to be placed, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    pub patience: u64,
}

/// The server.
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// This end's socket; it is created.
    #[arg(long, value_name = "PATH")]
    pub local: PathBuf,
    /// The card's end, as given to its netdev.
    #[arg(long, value_name = "PATH")]
    pub remote: PathBuf,
    /// The card's Ethernet address.
    #[arg(long, value_parser = station)]
    pub station: EthernetAddress,
    /// Width, height and bits of a pixel of each window, as its screen has them.
    #[arg(long, default_value = "320x240x16")]
    pub size: Screen,
    /// How many windows.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=WINDOWS as i64))]
    pub windows: u8,
    /// Megabits of pixels a second for each.
    #[arg(long, default_value_t = 40.0)]
    pub rate: f64,
    /// How many pictures; by default until Ctrl-C.
    #[arg(long)]
    pub pictures: Option<u32>,
}

fn station(text: &str) -> Result<EthernetAddress, String> {
    let address = text.parse();
    address.map_err(|()| "no Ethernet address, such as 02:00:00:00:00:05".to_owned())
}
