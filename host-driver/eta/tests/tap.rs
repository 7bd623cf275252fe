//! `ppe` on a TAP device in a network namespace of its own: the kernel's stack and curl are the
//! clients.

mod support;

use std::path::Path;
use std::process::Command;

use support::serve_pages;

const ENGINE: &str = "ETA_TEST_ENGINE";
const ROOT: &str = "ETA_TEST_ROOT";

/// Not a test of its own: the web server, in a process that the test starts.
#[test]
fn the_web_server() {
    let (Some(engine), Some(root)) = (std::env::var_os(ENGINE), std::env::var_os(ROOT)) else {
        return;
    };
    serve_pages(Path::new(&engine), Path::new(&root));
}

const SCRIPT: &str = r#"
"$PPE" --tap ppe0 --address 10.77.0.1/24 --idle "$IDLE" --listen ppe.sock --status status.sock &
ppe=$!
trap 'kill $ppe' EXIT
for try in $(seq 500); do test -S status.sock && break; sleep 0.01; done
ip address add 10.77.0.2/24 dev ppe0
ip link set ppe0 up
ETA_TEST_ENGINE=ppe.sock ETA_TEST_ROOT=root "$TEST" --exact the_web_server >server.log 2>&1 &
fetch() { curl --silent --show-error --max-time 20 "$@"; }
fetch --retry 20 --retry-delay 1 --retry-connrefused http://10.77.0.1/ || exit 1
fetch --output large http://10.77.0.1/large || exit 1
cmp large root/large || exit 1
# One connection for all, then one for each.
fetch --output /dev/null --write-out '%{http_code} %{num_connects}\n' http://10.77.0.1/[1-40] || exit 1
for number in $(seq 40); do fetch --output /dev/null http://10.77.0.1/large || exit 1; done
# Nobody listens there.
fetch http://10.77.0.1:81/ 2>&1 | grep -q refused || true
fetch http://10.77.0.1:81/ >/dev/null 2>&1
test $? = 7 || exit 1
echo all
"#;

#[test]
fn curl_gets_whole_pages_over_a_tap_device() {
    // `cargo xtask test` says so where it may not make namespaces.
    if std::env::var_os("TIGON_NO_NETWORKS").is_some() {
        return;
    }
    let quiet = |program: &str, word: &str| {
        let ran = Command::new(program).arg(word).arg("true").output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    let tools = Command::new("curl").arg("--version").output().is_ok()
        && Command::new("ip").arg("-V").output().is_ok();
    assert!(tools, "this test needs curl and iproute2");
    assert!(
        quiet("unshare", "-n") && Path::new("/dev/net/tun").exists(),
        "this test needs the privilege to make namespaces, and TAP devices"
    );
    for idle in ["adaptive", "sleep"] {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        std::fs::create_dir(&root).expect("a folder");
        std::fs::write(root.join("index.html"), "welcome\n").expect("a file");
        for number in 1..=40 {
            std::fs::write(root.join(number.to_string()), "x".repeat(number)).expect("a file");
        }
        let large: Vec<u8> = (0..1_000_003u32)
            .map(|byte| (byte * 7 % 251) as u8)
            .collect();
        std::fs::write(root.join("large"), large).expect("a file");
        let ran = Command::new("unshare")
            .args(["-n", "sh", "-c", SCRIPT])
            .env(
                "PPE",
                std::env::var_os("CARGO_BIN_EXE_ppe").expect("cargo test"),
            )
            .env("TEST", std::env::current_exe().expect("this program"))
            .env("IDLE", idle)
            .current_dir(folder.path())
            .output()
            .expect("unshare");
        let said = String::from_utf8_lossy(&ran.stdout);
        let complained = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{idle}: {said} {complained}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            (lines.first(), lines.last()),
            (Some(&"welcome"), Some(&"all")),
            "{idle}"
        );
        // Forty requests on the first one's connection.
        let ok = lines.iter().filter(|line| line.starts_with("200 ")).count();
        let new = lines.iter().filter(|line| **line == "200 1").count();
        assert_eq!((ok, new), (40, 1), "{idle}: {said}");
    }
}
