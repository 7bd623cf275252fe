//! `cargo xtask extension`, as who writes an extension types it.

use integration_tests::xtask_command::{complaint, xtask};
use spine_linker::policy::Policy;
use spine_linker::sign::{Signer, digits_of_bytes, trusted};
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// A folder to work in.
struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A key file of somebody's.
    fn key(&self, name: &str, byte: u8) -> (String, String) {
        let digits = format!("{byte:02x}").repeat(32);
        std::fs::write(self.path(name), format!("# a test's\n{digits}\n")).expect("room");
        let public = Signer::from_text(&digits).expect("a key").public();
        (self.text(name), digits_of_bytes(&public))
    }
}

fn extension(words: &[&str]) -> Output {
    let mut command = xtask(&[&["extension"], words].concat());
    command.output().expect("it starts")
}

fn said(words: &[&str]) -> String {
    let output = extension(words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

/// The container is read by the crate that the driver reads it with, not by the command.
fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a container")
}

#[test]
fn an_extension_from_nothing_to_a_container_that_another_answers_for() {
    let desk = Desk::new();
    let hello = desk.text("hello");
    let made = said(&["new", &hello]);
    assert!(made.contains("hello is there"), "{made}");
    let error = complaint(&extension(&["new", &hello]));
    assert!(error.contains("is there already"), "{error}");

    let checked = said(&["check", &hello]);
    let proven = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("hello: "));
        let line = line.unwrap_or_else(|| panic!("{text}")).to_owned();
        assert!(line.contains("bytes of stack at most"), "{line}");
        assert!(text.contains("calls spine.runtime.add_handler"), "{text}");
        line
    };
    let line = proven(&checked);

    let (ours, our_key) = desk.key("ours.key", 0x31);
    let (theirs, their_key) = desk.key("theirs.key", 0x32);
    let container = desk.text("hello.spine");
    let built = said(&["build", &hello, "--out", &container, "--key", &theirs]);
    assert_eq!(proven(&built), line);

    // Procedures of others are granted by name.
    let granted = said(&["policy", "--call", "numbers", "--call", "routes"]);
    assert!(
        granted.contains("domains = [\"numbers\", \"routes\", \"spine."),
        "{granted}"
    );

    // The policy of each lets in what that one has signed, and nothing else.
    let grants = |key: &str| Policy::parse(&said(&["policy", "--key", key])).expect("a policy");
    let (our_policy, their_policy) = (grants(&ours), grants(&theirs));
    let lets_in = |policy: &Policy, path: &str| {
        let bytes = bytes(Path::new(path));
        let build = policy.build().expect("a build");
        let image = trusted(&bytes, build).expect("as it was signed");
        policy.grant(&image.trailer().signer, image.grade()).is_ok()
    };
    assert!(lets_in(&their_policy, &container));
    assert!(!lets_in(&our_policy, &container));

    let mine = desk.text("mine.spine");
    let signed = said(&["sign", &container, "--key", &ours, "--out", &mine]);
    assert_eq!(proven(&signed), line);
    assert!(signed.contains(&format!("signed by {our_key}")), "{signed}");
    assert!(lets_in(&our_policy, &mine));
    assert!(!lets_in(&their_policy, &mine));
    assert!(lets_in(&their_policy, &container), "it is as it was");

    // One flipped bit: nobody signs it, and the list says so.
    let changed = desk.text("changed.spine");
    let mut flipped = bytes(Path::new(&mine));
    flipped[100] ^= 1;
    std::fs::write(&changed, &flipped).expect("room");
    let error = complaint(&extension(&["sign", &changed, "--key", &ours]));
    assert!(error.contains("is not signed by the signer"), "{error}");
    assert_eq!(bytes(Path::new(&changed)), flipped, "it is as it was");
    let rubbish = desk.text("rubbish.spine");
    std::fs::write(&rubbish, b"no container").expect("room");

    let list = said(&["list", &container, &mine, &changed, &rubbish]);
    let rows: Vec<&str> = list.lines().skip(1).collect();
    let [first, second, third, fourth] = rows.as_slice() else {
        panic!("{list}");
    };
    for (row, key) in [(first, &their_key), (second, &our_key), (third, &our_key)] {
        assert!(row.contains("hello") && row.contains("language"), "{row}");
        assert!(row.contains(&key[..12]), "{row}");
    }
    assert!(
        first.ends_with("good") && second.ends_with("good"),
        "{list}"
    );
    assert!(third.contains("not signed by the signer"), "{list}");
    assert!(fourth.contains("no container"), "{list}");
}

#[test]
fn an_extension_is_tried_out_on_a_simulated_card() {
    let desk = Desk::new();
    let count = desk.text("count");
    said(&["new", &count]);
    let told = said(&["run", &count, "--count", "7", "--guard", "udp:4711"]);
    for line in [
        "count: 7 runs for 7 datagrams; cut off 0 times",
        "  counter 0: 7",
        "  log: the first frame has 60 bytes",
        "  the host received 7",
        "  the card answered 0",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
    // A guard that no datagram meets.
    let told = said(&["run", &count, "--count", "3", "--guard", "udp:4712"]);
    assert!(told.contains("count: 0 runs for 3 datagrams"), "{told}");
    assert!(told.contains("  the host received 3"), "{told}");
    let echo = testbed::paths::root().join("firmware/spine/extensions/echo");
    let echo = echo.display().to_string();
    let told = said(&["run", &echo, "--port", "7", "--text", "over there"]);
    assert!(told.contains("  the card answered 10"), "{told}");
    assert!(told.contains("the first answer: \"over there\""), "{told}");
}

#[test]
fn what_the_walls_refuse_is_said_in_one_line() {
    let desk = Desk::new();
    for name in ["Hello", "spine", "a_b"] {
        let error = complaint(&extension(&["new", &desk.text(name)]));
        assert!(error.starts_with(name), "{error}");
        assert!(!desk.path(name).exists());
    }
    let evil = desk.text("evil");
    said(&["new", &evil]);
    let library = desk.path("evil/src/lib.rs");
    let good = std::fs::read_to_string(&library).expect("the crate");
    let peek = "\npub fn peek() -> u32 {\n    unsafe { *(0x8000 as *const u32) }\n}\n";
    std::fs::write(&library, good.clone() + peek).expect("room");
    let error = complaint(&extension(&["build", &evil]));
    let line = good.lines().count() + 3;
    assert!(
        error.ends_with(&format!("lib.rs:{line}: unsafe")),
        "{error}"
    );
    std::fs::write(&library, &good).expect("room");
    let manifest = desk.path("evil/Cargo.toml");
    let plain = std::fs::read_to_string(&manifest).expect("the crate");
    let more = plain.replace("[workspace]", "[features]\nx = []\n[workspace]");
    std::fs::write(&manifest, more).expect("room");
    let error = complaint(&extension(&["build", &evil]));
    assert!(error.ends_with("manifest has [features]"), "{error}");
    let error = complaint(&extension(&["check", &desk.text("nothing")]));
    assert!(error.ends_with("nothing holds no crate"), "{error}");
}
