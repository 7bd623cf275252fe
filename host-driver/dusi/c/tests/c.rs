//! The header is what cbindgen makes, and a C program finds every operation of Table I to do what
//! it should.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eta::Engine;
use eta::memory_wire::{MemoryWire, pair};
use host_driver::stack::Identity;
use smoltcp::wire::Ipv4Cidr;

fn own(path: &str) -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test");
    Path::new(&package).join(path)
}

#[test]
fn the_header_is_made_from_the_source() {
    let config = cbindgen::Config::from_file(own("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(own("src/ual.rs"))
        .with_src(own("src/events.rs"))
        .with_src(own("src/memory.rs"))
        .with_src(own("src/operations.rs"))
        .generate()
        .expect("bindings");
    let mut header = Vec::new();
    bindings.write(&mut header);
    let header = String::from_utf8(header).expect("text");
    let place = own("include/dusi.h");
    if std::env::var_os("DUSI_WRITE_HEADER").is_some() {
        std::fs::write(&place, &header).expect("a file");
    }
    let stands = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(
        stands == header,
        "include/dusi.h is old: DUSI_WRITE_HEADER=1 cargo test -p dusi-c"
    );
    for name in [
        "Open_Ual",
        "Create_EvQ",
        "Socket",
        "Connect",
        "Listen",
        "Bind",
        "Accept",
        "Recv",
        "Send",
        "Shutdown",
        "Set_Socket_Ops",
        "Get_Socket_Ops",
        "Wait_All",
        "EvQ_Num_Events",
        "Done",
        "Register_Memory",
        "Deregister_Memory",
    ] {
        assert!(
            header.contains(&format!("Dusi_{name}(")),
            "{name} of Table I"
        );
    }
}

/// The library for C, which Cargo put beside this test's folder.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let deps = test.parent().expect("a folder");
    let found = [deps.parent().expect("a folder"), deps]
        .map(|folder| folder.join("libdusi_c.a"))
        .into_iter()
        .find(|library| library.exists());
    found.unwrap_or_else(|| panic!("no libdusi_c.a at {}", deps.display()))
}

fn engine(wire: MemoryWire, last: u8, listen: PathBuf, stop: Arc<AtomicBool>) {
    let identity = Identity {
        station: [2, 0, 0, 0, 0, last],
        address: Ipv4Cidr::new(Ipv4Addr::new(10, 77, 0, last), 24),
    };
    let mut engine = Engine::new(wire, identity).expect("descriptors");
    engine.listen(&listen).expect("a socket");
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            engine
                .turn(Duration::from_millis(10))
                .expect("a wire that holds");
        }
    });
}

#[test]
fn a_c_program_holds_every_operation_of_table_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let program = path("table");
    let built = Command::new("gcc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(own("include"))
        .arg("-o")
        .arg(&program)
        .arg(own("tests/table.c"))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("gcc");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let stop = Arc::new(AtomicBool::new(false));
    let (near, far) = pair().expect("descriptors");
    engine(near, 1, path("near.sock"), stop.clone());
    engine(far, 2, path("far.sock"), stop.clone());
    let ran = Command::new("timeout")
        .arg("60")
        .arg(&program)
        .args([path("near.sock"), path("far.sock")])
        .output()
        .expect("the program");
    stop.store(true, Ordering::Relaxed);
    let said = String::from_utf8_lossy(&ran.stdout);
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{} {complained}", ran.status);
    assert_eq!(said.trim(), "all of Table I");
}
