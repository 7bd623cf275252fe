//! The agent in the guest: serves the virtio-serial port that QEMU gave it.
#![forbid(unsafe_code)]

use guest_agent::{PORT, serve::serve};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    match open() {
        Ok((requests, answers)) => {
            let end = serve(requests, answers);
            eprintln!("agent: {end}");
        }
        Err(error) => eprintln!("agent: no port {PORT}: {error}"),
    }
    // `init` starts it again, but not at once, for a host that has gone.
    std::thread::sleep(Duration::from_millis(200));
    ExitCode::FAILURE
}

/// The port, once to read and once to write.
fn open() -> io::Result<(File, File)> {
    let port = OpenOptions::new().read(true).write(true).open(find()?)?;
    let answers = port.try_clone()?;
    Ok((port, answers))
}

/// The port with our name, found in sysfs.
fn find() -> io::Result<PathBuf> {
    for entry in fs::read_dir("/sys/class/virtio-ports")? {
        let entry = entry?;
        let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        if name.trim() == PORT {
            return Ok(PathBuf::from("/dev").join(entry.file_name()));
        }
    }
    Err(io::Error::from(io::ErrorKind::NotFound))
}
