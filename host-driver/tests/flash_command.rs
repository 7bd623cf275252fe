//! `tigonctl flash` on the file that keeps an emulated board's EEPROM, completions, manual
//! pages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use boot_slots::{BoardId, Header};
use host_driver::flash::signature::ImageSigner;
use host_interface::image::{Image, Version};
use tempfile::TempDir;

/// A desk with an EEPROM file on it.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn eeprom(&self) -> Vec<u8> {
        std::fs::read(self.path("eeprom")).expect("the EEPROM file")
    }

    /// A signed image for a board, which says which build it is.
    fn image(&self, name: &str, device: u16, build: u8) -> String {
        let code = vec![build; 3000];
        let version = Version {
            major: 0,
            minor: 1,
            fix: build,
        };
        let image = Image::new(version, 0x4000, 0x4000, &code).expect("an image");
        let board = BoardId {
            vendor: 0x12AE,
            device,
        };
        let key = Path::new(env!("CARGO_MANIFEST_DIR")).join("../firmware/keys/development.key");
        let signer = ImageSigner::from_file(&key).expect("the development key");
        let file = signer.sign(Header::of(board, &image, [build; 20]), &code);
        self.file(name, &file)
    }

    fn file(&self, name: &str, contents: &[u8]) -> String {
        std::fs::write(self.path(name), contents).expect("a file");
        self.path(name).display().to_string()
    }

    fn flash(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tigonctl"))
            .args(["flash", "--eeprom"])
            .arg(self.path("eeprom"))
            .args(words)
            .output()
            .expect("the command runs")
    }

    fn says(&self, words: &[&str]) -> String {
        let output = self.flash(words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The one line of a command that must be refused, after which nothing has changed.
    fn refuses(&self, words: &[&str]) -> String {
        let before = std::fs::read(self.path("eeprom")).ok();
        let output = self.flash(words);
        let text = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(std::fs::read(self.path("eeprom")).ok(), before, "{text}");
        text
    }
}

#[test]
fn an_image_goes_into_a_new_file_and_a_second_one_beside_it() {
    let desk = Desk::new();
    let (old, new) = (desk.image("old", 1, 1), desk.image("new", 1, 2));
    assert_eq!(
        desk.says(&["install", &old, "--confirmed"]),
        "installed in slot 0, confirmed\n"
    );
    assert_eq!(desk.eeprom().len(), 0x4_0000);
    assert_eq!(desk.eeprom()[0x8C..0x94], [0, 0, 0, 0x60, 0xCF, 0, 0, 1]);
    assert_eq!(
        desk.says(&["install", &new]),
        "installed in slot 1, on trial\n"
    );
    let info = desk.says(&["info"]);
    let lines: Vec<&str> = info.lines().collect();
    assert_eq!(
        lines[0],
        "EEPROM 262144 bytes, 130304 for an image, boot record 2"
    );
    let build = "01".repeat(20);
    assert_eq!(
        lines[1],
        format!(
            "  slot 0: version 0.1.1, 3000 bytes, build {build}, confirmed; starts; \
             signature: trusted"
        )
    );
    assert!(lines[2].starts_with("* slot 1: version 0.1.2"), "{info}");
    assert!(lines[2].contains("3 trial boots left; starts"), "{info}");
    assert_eq!(desk.says(&["verify"]).matches(", good").count(), 2);
    desk.says(&["confirm", "1"]);
    assert!(!desk.says(&["info"]).contains("trial"));
    assert_eq!(desk.says(&["prefer", "0"]), "slot 0 comes first\n");
    assert!(desk.says(&["info"]).contains("* slot 0"));
}

#[test]
fn json_says_the_same() {
    let desk = Desk::new();
    let image = desk.image("image", 1, 1);
    let value: serde_json::Value =
        serde_json::from_str(&desk.says(&["install", &image, "--json"])).expect("an object");
    assert_eq!(value["kind"], "installed");
    assert_eq!(value["slot"], 0);
    let value: serde_json::Value =
        serde_json::from_str(&desk.says(&["info", "--json"])).expect("an object");
    assert_eq!(value["slots"][0]["signature"], "trusted");
    assert_eq!(value["slots"][1]["state"], "empty");
}

#[test]
fn what_does_not_belong_there_is_refused_in_one_line() {
    let desk = Desk::new();
    let good = desk.image("good", 1, 1);
    desk.says(&["install", &good, "--confirmed"]);
    let bytes = std::fs::read(&good).expect("the image");

    let other = desk.image("other", 2, 1);
    let text = desk.refuses(&["install", &other]);
    assert!(
        text.contains("for board 12ae:0002, this is 12ae:0001"),
        "{text}"
    );
    let cut = desk.file("cut", &bytes[..bytes.len() - 8]);
    let text = desk.refuses(&["install", &cut]);
    assert!(
        text.contains("2992 bytes of image, its header says 3000"),
        "{text}"
    );
    let mut flipped = bytes.clone();
    flipped[1000] ^= 4;
    let flipped = desk.file("flipped", &flipped);
    let text = desk.refuses(&["install", &flipped]);
    assert!(text.contains("the image is damaged"), "{text}");
    let tg2 = desk.file("tg2.bin", &[0; 4000]);
    let text = desk.refuses(&["install", &tg2]);
    assert!(text.contains("no flash image"), "{text}");
    let text = desk.refuses(&["install", &good, "--slot", "0"]);
    assert!(
        text.contains("slot 0 holds the only image that starts"),
        "{text}"
    );
    let text = desk.refuses(&["install", "/nonexistent/image"]);
    assert!(text.contains("/nonexistent/image"), "{text}");
    assert!(desk.refuses(&["confirm", "1"]).contains("slot 1"));
    // A card with one image is whole, one without any is not.
    assert_eq!(desk.says(&["verify"]).lines().count(), 1);
    let text = desk.refuses(&["verify", "--slot", "1"]);
    assert!(text.contains("slot 1: there is no image"), "{text}");
    let text = Desk::new().refuses(&["verify"]);
    assert!(text.contains("no image in either slot"), "{text}");
}

/// The same image under another key.
#[test]
fn an_image_of_somebody_else_is_refused() {
    let desk = Desk::new();
    let image = desk.image("image", 1, 1);
    let stranger = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    let stranger = host_driver::flash::hex(stranger.verifying_key().as_bytes());
    let stranger = desk.file("stranger.pub", stranger.as_bytes());
    let output = Command::new(env!("CARGO_BIN_EXE_tigonctl"))
        .args(["flash", "--eeprom"])
        .arg(desk.path("eeprom"))
        .args(["install", &image])
        .env("TIGON_TRUSTED_KEY", &stranger)
        .output()
        .expect("the command runs");
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not signed with the trusted key"), "{text}");
    assert!(!desk.path("eeprom").exists(), "nothing was written");
}

#[test]
fn a_backup_comes_back_but_for_the_manufacturing_data() {
    let desk = Desk::new();
    let (old, new) = (desk.image("old", 1, 1), desk.image("new", 1, 2));
    desk.says(&["install", &old, "--confirmed"]);
    let backup = desk.path("backup").display().to_string();
    desk.says(&["backup", &backup]);
    let mut then = desk.eeprom();
    assert_eq!(std::fs::read(&backup).expect("a backup"), then);
    desk.says(&["install", &new, "--confirmed"]);
    // Another card, with an address of its own.
    let mut now = desk.eeprom();
    now[0x93] = 0x77;
    desk.file("eeprom", &now);
    desk.says(&["restore", &backup]);
    then[0x93] = 0x77;
    assert!(desk.eeprom() == then, "all but the station address is back");
    let short = desk.file("short", &[0; 100]);
    let text = desk.refuses(&["restore", &short]);
    assert!(text.contains("100 bytes, the EEPROM 262144"), "{text}");
}

/// What a backup would have started must be signed and for this board, too.
#[test]
fn a_backup_of_somebody_else_is_refused() {
    let desk = Desk::new();
    desk.says(&["install", &desk.image("image", 1, 1), "--confirmed"]);
    let backup = desk.path("backup").display().to_string();
    desk.says(&["backup", &backup]);
    let text = desk.refuses(&["--board", "12ae:0002", "restore", &backup]);
    assert!(text.contains("for board 12ae:0001"), "{text}");
    // The signature is in the header, over which there is a CRC: an image that somebody else
    // has signed.
    let code = vec![5; 3000];
    let version = Version {
        major: 0,
        minor: 1,
        fix: 5,
    };
    let image = Image::new(version, 0x4000, 0x4000, &code).expect("an image");
    let board = BoardId {
        vendor: 0x12AE,
        device: 1,
    };
    let header = Header::of(board, &image, [5; 20]).to_bytes();
    let mut bytes = desk.eeprom();
    bytes[0x400..][..header.len()].copy_from_slice(&header);
    bytes[0x500..][..code.len()].copy_from_slice(&code);
    let foreign = desk.file("foreign", &bytes);
    let text = desk.refuses(&["restore", &foreign]);
    assert!(
        text.contains("slot 0") && text.contains("not signed"),
        "{text}"
    );
}

#[test]
fn an_eeprom_without_room_is_refused() {
    let desk = Desk::new();
    desk.file("eeprom", &[0xFF; 1024]);
    let text = desk.refuses(&["info"]);
    assert!(text.contains("1024 bytes has no room"), "{text}");
}

#[test]
fn shells_learn_the_commands() {
    for (shell, word) in [
        ("bash", "_tigonctl"),
        ("zsh", "#compdef"),
        ("fish", "complete"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tigonctl"))
            .args(["completions", shell])
            .output()
            .expect("the command runs");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success());
        assert!(text.contains(word) && text.contains("flash"), "{shell}");
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    let written = Command::new(env!("CARGO_BIN_EXE_tigonctl"))
        .arg("man")
        .arg(&pages)
        .status();
    assert!(written.expect("the command runs").success());
    for (page, words) in [
        ("tigonctl.1", "Works with a Tigon II card"),
        ("tigonctl-capture.1", "capture"),
        ("tigonctl-flash-verify.1", "verify"),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).expect(page);
        assert!(text.starts_with(".ie") && text.contains(".TH "), "{page}");
        assert!(text.contains(words), "{page}: {text}");
    }
}
