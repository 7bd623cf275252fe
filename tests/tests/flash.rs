//! Tests `cargo xtask flash` on the file of an emulated board's EEPROM, and what `tigonctl flash`
//! reads from it afterwards.

use integration_tests::tigonctl::{complaint, program, said};
use integration_tests::xtask_command::xtask;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use testbed::net::namespace;

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn eeprom(&self) -> Vec<u8> {
        std::fs::read(self.path("eeprom")).expect("the EEPROM file")
    }

    /// `cargo xtask flash --eeprom`, with more words.
    fn flash(&self, words: &[&str]) -> Output {
        let mut command = xtask(&["flash", "--eeprom"]);
        command.arg(self.path("eeprom")).args(words);
        command.output().expect("the command runs")
    }

    /// The file that was flashed: the command names it.
    fn flashed(&self, words: &[&str]) -> PathBuf {
        let text = said(&self.flash(words));
        let image = text.lines().find(|line| line.ends_with(".flash.bin"));
        image.unwrap_or_else(|| panic!("{text}")).into()
    }

    /// `tigonctl flash --eeprom`, with more words.
    fn look(&self, words: &[&str]) -> String {
        let mut command = Command::new(program());
        command.args(["flash", "--eeprom"]).arg(self.path("eeprom"));
        said(&command.args(words).output().expect("the command runs"))
    }

    /// What flashing says that must fail, with the EEPROM left as it is.
    fn refused(&self, words: &[&str]) -> String {
        let before = self.eeprom();
        let output = self.flash(words);
        assert!(!output.status.success(), "{words:?} should be refused");
        assert!(self.eeprom() == before, "{words:?} changed the EEPROM");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn an_eeprom_file_is_flashed_verified_kept_and_restored() {
    let desk = Desk::new();
    let image = desk.flashed(&["--confirmed"]);
    assert_eq!(desk.eeprom().len(), 0x4_0000);
    let bytes = std::fs::read(&image).expect("the image");
    // A header of 128 bytes in a page of its own, then the image.
    assert!(desk.eeprom()[0x400..0x480] == bytes[..128]);
    assert!(desk.eeprom()[0x500..].starts_with(&bytes[128..]));
    desk.flashed(&["--slot", "1"]);
    let info = desk.look(&["info"]);
    assert!(
        info.contains("* slot 1") && info.contains("3 trial boots left"),
        "{info}"
    );
    assert_eq!(
        info.matches("signature: development key").count(),
        2,
        "{info}"
    );
    assert_eq!(desk.look(&["verify"]).matches(", good").count(), 2);

    let backup = desk.path("backup");
    desk.look(&["backup", &text(&backup)]);
    let then = desk.eeprom();
    desk.flashed(&["--slot", "0", "--confirmed", "--image", &text(&image)]);
    assert!(desk.eeprom() != then);
    desk.look(&["restore", &text(&backup)]);
    assert!(desk.eeprom() == then, "all is as it was");
}

#[test]
fn what_does_not_belong_there_is_refused() {
    let nowhere = complaint(&xtask(&["flash"]).output().expect("the command runs"));
    assert!(nowhere.contains("--eeprom FILE"), "{nowhere}");
    let desk = Desk::new();
    let image = desk.flashed(&["--confirmed"]);
    let bytes = std::fs::read(&image).expect("the image");

    let board = testbed::paths::root().join("boards/tigon2/tigon2-copper.toml");
    let other = Desk::new();
    let copper = other.flashed(&["--board", &text(&board)]);
    let said = desk.refused(&["--image", &text(&copper)]);
    assert!(said.contains("for board"), "{said}");

    let cut = desk.path("cut");
    std::fs::write(&cut, &bytes[..bytes.len() - 100]).expect("room");
    let said = desk.refused(&["--image", &text(&cut)]);
    assert!(said.contains("its header says"), "{said}");

    let stranger = desk.path("stranger.pub");
    std::fs::write(&stranger, "ab".repeat(32)).expect("room");
    let mut command = xtask(&["flash", "--eeprom"]);
    command
        .arg(desk.path("eeprom"))
        .args(["--image", &text(&image)]);
    command.env("TIGON_TRUSTED_KEY", &stranger);
    let output = command.output().expect("the command runs");
    assert!(!output.status.success());
    let mut command = Command::new(program());
    command.args(["flash", "--eeprom"]).arg(desk.path("eeprom"));
    command
        .args(["install", &text(&image)])
        .env("TIGON_TRUSTED_KEY", &stranger);
    let said = complaint(&command.output().expect("the command runs"));
    assert!(said.contains("key"), "{said}");
}

/// From the tree to a card that runs what is in its own memory, in two commands.
#[test]
fn a_card_boots_what_was_flashed() {
    if !namespace::for_test() {
        return;
    }
    let desk = Desk::new();
    let eeprom = text(&desk.path("eeprom"));
    let words = ["qemu-run", "--interactive", "--eeprom", &eeprom];
    let nothing = complaint(&xtask(&words).output().expect("the command runs"));
    assert!(nothing.contains("cargo xtask flash --eeprom"), "{nothing}");

    desk.flashed(&[]);
    assert!(desk.look(&["info"]).contains("3 trial boots left"));
    let (shell, reported) = (desk.path("shell"), desk.path("told"));
    let script = format!(
        "#!/bin/sh\nexec > {}\nping -c 3 10.77.0.2\ntigonctl log\n",
        text(&reported)
    );
    std::fs::write(&shell, script).expect("room");
    std::fs::set_permissions(&shell, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let mut command = xtask(&words);
    let output = command.env("SHELL", &shell).stdin(Stdio::null()).output();
    let output = said(&output.expect("the command runs"));
    assert!(output.contains("booted slot 0, now confirmed"), "{output}");
    let reported = std::fs::read_to_string(&reported).expect("what the shell said");
    assert!(reported.contains("3 received"), "{reported}");
    // The ELF file of this tree is that of the firmware that was flashed.
    assert!(reported.contains("link up, 1000 Mb/s"), "{reported}");
    let info = desk.look(&["info"]);
    assert!(info.contains("confirmed; starts"), "{info}");
}
