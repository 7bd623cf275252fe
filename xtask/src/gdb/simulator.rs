//! `cargo xtask gdb --sim`: gdb on the simulator.
//!
//! ```text
//!   gdb-multiarch ---- socket ---- tigon2_sim::gdb: stub, driver, card, wire, one after the other
//! ```
//!
//! Nothing runs while gdb inspects the card, so no time-out expires, and the same commands find
//! the same cycles in every session.

use super::{Arguments, debug, firmware_with, serve, session, write_facts};
use anyhow::{Context, Result};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixListener;
use testbed::judge;
use testbed::paths::board_file;
use testbed::setup::{self, Need};
use tigon2_model::Board;
use tigon2_sim::gdb::{self, GdbError, Workload, workload};
use tigon2_sim::timing::Parameters;

/// Starts the simulator's stub and gdb, and waits for gdb to end.
pub fn run(arguments: &Arguments) -> Result<()> {
    judge::profile(&board_file()?, &arguments.profile)?;
    let (built, place) = firmware_with(arguments)?;
    setup::ensure(&[Need::Firmware, Need::Gdb])?;
    let facts = write_facts()?;
    let workload = workload(arguments, built.image()?)?;
    if let Some(port) = arguments.serve {
        let listener =
            TcpListener::bind(("127.0.0.1", port)).with_context(|| format!("port {port}"))?;
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let served = connection.map_err(GdbError::from).and_then(|gdb| {
                    let output = gdb.try_clone()?;
                    let served = gdb::serve(gdb.try_clone()?, output, workload.clone());
                    // gdb waits for answers as long as anybody holds the connection.
                    gdb.shutdown(Shutdown::Both)?;
                    served
                });
                report(served);
            }
        });
        let session = session(&facts, &format!("localhost:{port}"), &place);
        return serve(&built.elf, &session, || Ok(()));
    }
    let folder = tempfile::tempdir().context("a folder for the socket")?;
    let socket = folder.path().join("gdb.sock");
    let listener =
        UnixListener::bind(&socket).with_context(|| format!("listen at {}", socket.display()))?;
    std::thread::spawn(move || {
        let served = listener
            .accept()
            .map_err(GdbError::from)
            .and_then(|(gdb, _)| {
                let output = gdb.try_clone()?;
                let served = gdb::serve(gdb.try_clone()?, output, workload);
                gdb.shutdown(Shutdown::Both)?;
                served
            });
        report(served);
    });
    let session = session(&facts, &socket.display().to_string(), &place);
    debug(&built.elf, &session, &arguments.words)
}

/// gdb itself says only that its connection was closed.
fn report(served: Result<(), GdbError>) {
    if let Err(error) = served {
        eprintln!("gdb: {error}");
    }
}

fn workload(arguments: &Arguments, image: Vec<u8>) -> Result<Workload> {
    if let Some(seed) = arguments.seed {
        return Ok(workload::story(image, seed));
    }
    let board = board_file()?;
    let parameters = Parameters::from_toml(&board, &arguments.profile)?;
    Ok(workload::frames(
        Board::from_toml(&board)?,
        parameters,
        image,
    ))
}
