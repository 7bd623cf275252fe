//! Tests the commands as a user types them: their reports, exit statuses and refusals.

use host_driver::capture::FrameReader;
use integration_tests::xtask_command::{complaint, signal, xtask};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use testbed::net::namespace;

/// Reports have one place, so commands that write one go one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("it starts")
}

/// The command lines of all processes that have this in them. (`pgrep` is a program that a
/// small system lacks.)
fn command_lines_with(part: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("it is mounted").flatten();
    let lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(part))
        .collect()
}

/// Runs `qemu-run` with little traffic and returns its report.
fn report_of(stack: &str) -> Value {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let words = [
        "qemu-run",
        "--stack",
        stack,
        "--count",
        "200",
        "--seconds",
        "1",
    ];
    let output = run(&mut xtask(&words));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let path = testbed::paths::reports().join("qemu-run.json");
    serde_json::from_slice(&std::fs::read(path).expect("the report")).expect("JSON")
}

/// What every report must show, whoever talked.
fn assert_healthy(report: &Value, stack: &str) {
    let number = |path: &str| {
        let value = report.pointer(path).and_then(Value::as_f64);
        value.unwrap_or_else(|| panic!("{path} in {report}"))
    };
    assert_eq!(report["engine"], "qemu");
    assert_eq!(report["stack"], stack);
    assert_eq!(report["dma_channels"], "both");
    assert_eq!(report["firmware_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(number("/ping/sent"), 400.0);
    assert_eq!(number("/ping/received"), 400.0, "{report}");
    assert!(number("/iperf/tcp_mbps_out") > 1.0, "{report}");
    assert!(number("/iperf/tcp_mbps_in") > 1.0, "{report}");
    assert!(number("/iperf/udp_datagrams_out") > 100.0, "{report}");
    assert!(number("/iperf/udp_datagrams_in") > 100.0, "{report}");
    assert!(number("/frames_tx") > 400.0 && number("/frames_rx") > 400.0);
    assert!(number("/interrupts") > 0.0);
    assert!(number("/handlers/Mailbox") > 0.0);
    assert!(report.pointer("/drops").is_some());
}

#[test]
fn linux_talks_to_linux_through_the_card() {
    if !namespace::for_test() {
        return;
    }
    assert_healthy(&report_of("linux"), "linux");
}

#[test]
fn without_privileges_smoltcp_talks_on_both_sides() {
    assert_healthy(&report_of("smoltcp"), "smoltcp");
}

/// The shell of `--interactive` is in the namespace behind the card. What a newcomer tries
/// there works: ping, iperf3, and the commands that look at the card beside its driver.
#[test]
fn an_interactive_shell_reaches_the_peer() {
    if !namespace::for_test() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (shell, said) = (folder.path().join("shell"), folder.path().join("said"));
    let capture = folder.path().join("out.pcap");
    // iperf3's server lets a client go before it listens anew: until then the next client is told
    // that it is busy, or is reset, and has not begun ("connected to" comes with a beginning).
    let reverse = "for try in $(seq 100); do\n\
         once=$(iperf3 -c 10.77.0.2 -t 1 -R 2>&1)\n\
         case $once in *' connected to '*) break;; esac; sleep 0.1\n\
         done\necho \"$once\"\n";
    let script = format!(
        "#!/bin/sh\nexec > {said} 2>&1\n\
         ping -i 0.1 -c 20 10.77.0.2 &\n\
         tigonctl capture -w {capture} -c 4\nwait\n\
         iperf3 -c 10.77.0.2 -t 1\n{reverse}\
         tigonctl info\ntigonctl stats\n",
        said = said.display(),
        capture = capture.display(),
    );
    std::fs::write(&shell, script).unwrap();
    std::fs::set_permissions(&shell, PermissionsExt::from_mode(0o755)).unwrap();
    let output = run(xtask(&["qemu-run", "--interactive", "--gdb"]).env("SHELL", &shell));
    assert!(output.status.success());
    let hints = String::from_utf8_lossy(&output.stdout);
    assert!(hints.contains("-ex 'target remote /"), "{hints}");
    assert!(hints.contains("iperf3 server over there"), "{hints}");
    let said = std::fs::read_to_string(&said).unwrap();
    assert!(said.contains("20 received"), "{said}");
    assert!(said.contains("4 frames, "), "{said}");
    assert_eq!(said.matches("iperf Done.").count(), 2, "{said}");
    assert!(said.contains("\ndriven by process "), "{said}");
    assert!(said.contains("\n     receive_complete: "), "{said}");
    let mut frames = FrameReader::open(&capture).unwrap();
    for number in 1..=4 {
        assert!(frames.next_frame().unwrap().is_some(), "frame {number}");
    }
    assert_eq!(frames.next_frame().unwrap(), None);
    // Neither cargo's words nor the firmware's sizes are what was asked for.
    let reported = format!("{hints}{}", String::from_utf8_lossy(&output.stderr));
    for noise in ["Finished", "Compiling", "bytes used"] {
        assert!(!reported.contains(noise), "{noise}: {reported}");
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    if !namespace::for_test() {
        return;
    }
    let mut child = xtask(&["qemu-run", "--stack", "linux", "--seconds", "600"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = child.id();
    let host = format!("tigon-host-{pid}");
    let namespaces = || String::from_utf8(run(Command::new("ip").args(["netns"])).stdout).unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    // The traffic has begun when something answers in the host's namespace.
    let talking = || {
        let words = ["netns", "exec", &host, "ping", "-c1", "-W1", "10.77.0.2"];
        namespaces().contains(&host) && run(Command::new("ip").args(words)).status.success()
    };
    while !talking() {
        assert!(Instant::now() < end, "the traffic did not begin");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(100));
    }
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(complaint(&output), "interrupted");
    assert_eq!(output.status.code(), Some(130));

    assert!(!namespaces().contains(&pid.to_string()), "{}", namespaces());
    let devices = run(Command::new("ip").args(["link"])).stdout;
    let devices = String::from_utf8_lossy(&devices);
    assert!(!devices.contains(&format!("tgh{pid}")), "{devices}");
    assert!(!devices.contains(&format!("tgw{pid}")), "{devices}");
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    let wire = format!("ifname=tgw{pid}");
    assert_eq!(command_lines_with(&wire), [""; 0], "QEMU is still there");
}

/// Shells and scripts tell a command that was ended from one that failed.
#[test]
fn a_signal_is_told_by_the_exit_status() {
    for (which, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut child = xtask(&["sim-run", "--count", "60000"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let begun = |line: &Result<String, _>| line.as_ref().unwrap().contains("ping, 60000");
        assert!(lines.any(|line| begun(&line)), "it ended by itself");
        signal(&child, which);
        let output = child.wait_with_output().unwrap();
        assert_eq!(complaint(&output), "interrupted");
        assert_eq!(output.status.code(), Some(status));
    }
}

#[test]
fn no_qemu_source_is_one_clear_line() {
    let cache = tempfile::tempdir().unwrap();
    let output = run(xtask(&["qemu-run"])
        .env("TIGON_QEMU_SRC", "/nonexistent/qemu")
        .env("TIGON_CACHE", cache.path()));
    let said = complaint(&output);
    assert!(said.contains("/nonexistent/qemu"), "{said}");
}

/// An image that somebody else has made: ours without its seal and with another
/// version stands for it.
fn foreign_image() -> (tempfile::TempDir, PathBuf) {
    let mut image = integration_tests::stage::firmware();
    image[..4].copy_from_slice(&[12, 4, 99, 0]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tg2.bin");
    std::fs::write(&path, image).unwrap();
    (folder, path)
}

/// The timing model was calibrated with somebody else's image and one DMA channel at a time;
/// others are measured in that way unless the user wants it otherwise. The report says which.
#[test]
fn the_bench_of_a_foreign_image_says_how_its_dma_channels_worked() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let (_folder, path) = foreign_image();
    let point = ["bench", "--experiment", "send", "--datagram", "1472"];
    let firmware = ["--firmware", path.to_str().unwrap()];
    for (words, channels, host, said) in [
        (
            &[][..],
            "one",
            "driver",
            "one DMA channel at a time, this project's driver",
        ),
        (
            &["--dma-channels", "both"],
            "both",
            "driver",
            "both DMA channels at once, this project's driver",
        ),
        (
            &["--host", "calibration"],
            "one",
            "calibration",
            "one DMA channel at a time, the calibration's host",
        ),
    ] {
        let output = run(&mut xtask(&[&point, &firmware[..], words].concat()));
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaint}");
        let printed = String::from_utf8_lossy(&output.stdout);
        let path = testbed::paths::reports().join("bench-part.json");
        let page = std::fs::read_to_string(path.with_extension("md")).unwrap();
        for text in [&printed, &*page] {
            assert!(text.contains(&format!("measured with {said}")), "{text}");
        }
        let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let points = report.as_array().expect("points");
        assert_eq!(points.len(), 2, "one BD a frame, and two");
        for point in points {
            assert_eq!(point["dma_channels"], channels);
            assert_eq!(point["host"], host);
            assert_eq!(point["experiment"], "send");
        }
    }
}

#[test]
fn the_simulator_runs_an_image_of_the_users_choice() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let (_folder, path) = foreign_image();
    let words = ["sim-run", "--count", "50", "--seconds", "1", "--firmware"];
    let how = ["--dma-channels", "one"];
    let output = run(&mut xtask(
        &[&words[..], &[path.to_str().unwrap()], &how].concat(),
    ));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("one DMA channel at a time"), "{table}");
    let path = testbed::paths::reports().join("sim-run.json");
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(report["engine"], "sim");
    assert_eq!(report["dma_channels"], "one");
    assert_eq!(report["ping"]["sent"], 100);
    assert_eq!(report["ping"]["received"], 100, "{report}");
    assert!(report["iperf"]["tcp_mbps_out"].as_f64().unwrap() > 0.1);
    assert!(report["iperf"]["tcp_mbps_in"].as_f64().unwrap() > 0.1);
}

#[test]
fn an_unknown_flag_is_refused() {
    let output = run(&mut xtask(&["qemu-run", "--no-such-flag"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--no-such-flag"));
}

#[test]
fn every_command_has_help_with_an_example() {
    for verb in [
        "setup", "build", "qemu-run", "sim-run", "guest", "bench", "soak", "test",
    ] {
        let help = run(&mut xtask(&[verb, "--help"]));
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(
            text.contains(&format!("cargo xtask {verb}")),
            "{verb}: {text}"
        );
        assert!(text.contains("Example"), "{verb}: {text}");
    }
}
