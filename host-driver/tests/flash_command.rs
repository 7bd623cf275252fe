//! Tests `tigonctl flash` on the file that keeps an emulated board's EEPROM, shell completions,
//! and manual pages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use boot_slots::{BoardId, Header};
use host_driver::flash::signature::ImageSigner;
use host_interface::image::{Image, Version};
use tempfile::TempDir;

/// The tree's development key.
fn development() -> ImageSigner {
    // Of the checkout in which Cargo runs this, and not of that in which it was built.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test");
    let key = Path::new(&package).join("../firmware/keys/development.key");
    ImageSigner::from_file(&key).expect("the development key")
}

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
        self.signed(name, device, build, 0, &development())
    }

    fn signed(
        &self,
        name: &str,
        device: u16,
        build: u8,
        counter: u32,
        signer: &ImageSigner,
    ) -> String {
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
        let header = Header {
            counter,
            ..Header::of(board, &image, [build; 20])
        };
        self.file(name, &signer.sign(header, &code))
    }

    fn file(&self, name: &str, contents: &[u8]) -> String {
        std::fs::write(self.path(name), contents).expect("a file");
        self.path(name).display().to_string()
    }

    fn flash(&self, words: &[&str]) -> Output {
        Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
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
        "installed in slot 0, confirmed; signature: development key\n"
    );
    assert_eq!(desk.eeprom().len(), 0x4_0000);
    assert_eq!(desk.eeprom()[0x8C..0x94], [0, 0, 0, 0x60, 0xCF, 0, 0, 1]);
    assert_eq!(
        desk.says(&["install", &new]),
        "installed in slot 1, on trial; signature: development key\n"
    );
    let info = desk.says(&["info"]);
    let lines: Vec<&str> = info.lines().collect();
    assert_eq!(
        lines[0],
        "EEPROM 262144 bytes, 130304 for an image, boot record 2, rollback counter 0"
    );
    let build = "01".repeat(20);
    assert_eq!(
        lines[1],
        format!(
            "  slot 0: version 0.1.1, counter 0, 3000 bytes, build {build}, confirmed; \
             starts; signature: development key"
        )
    );
    assert!(lines[2].starts_with("* slot 1: version 0.1.2"), "{info}");
    assert!(lines[2].contains("3 trial boots left; starts"), "{info}");
    let verified = desk.says(&["verify"]);
    let good = ", good; signature: development key";
    assert_eq!(verified.matches(good).count(), 2, "{verified}");
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
    assert_eq!(value["slots"][0]["key"], "development key");
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
    let output = Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
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

/// A key of one's own: `mine.key` and `mine.pub` on a desk.
fn own_key(desk: &Desk) -> (ImageSigner, String) {
    let seed = desk.file("mine.key", "09".repeat(32).as_bytes());
    let signer = ImageSigner::from_file(Path::new(&seed)).expect("a key");
    let public = ed25519_dalek::SigningKey::from_bytes(&[9; 32]).verifying_key();
    let public = host_driver::flash::hex(public.as_bytes());
    (signer, desk.file("mine.pub", public.as_bytes()))
}

/// Whoever requires a key of their own gets no image that anybody could have signed, and
/// hears so of what is there.
#[test]
fn a_required_key_refuses_the_development_key() {
    let desk = Desk::new();
    let (signer, key) = own_key(&desk);
    let open = desk.image("open", 1, 1);
    let mine = desk.signed("mine", 1, 2, 0, &signer);
    desk.says(&["install", &open, "--confirmed"]);
    let text = desk.refuses(&["--require-key", &key, "install", &open]);
    assert!(text.contains("with the development key"), "{text}");
    let text = desk.refuses(&["--require-key", &key, "verify"]);
    assert!(
        text.contains("slot 0") && text.contains("development key"),
        "{text}"
    );
    let said = desk.says(&["--require-key", &key, "install", &mine]);
    assert_eq!(
        said,
        "installed in slot 1, on trial; signature: key fd1724385aa0c75b\n"
    );
    let info = desk.says(&["--require-key", &key, "info"]);
    let lines: Vec<&str> = info.lines().collect();
    assert!(
        lines[1].ends_with("but with the development key, which anybody has"),
        "{info}"
    );
    assert!(
        lines[2].ends_with("signature: key fd1724385aa0c75b"),
        "{info}"
    );

    let development = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test"))
        .join("../firmware/keys/development.pub");
    let development = development.display().to_string();
    let text = desk.refuses(&["--require-key", &development, "install", &open]);
    assert!(text.contains("this is the development key"), "{text}");
    let text = desk.refuses(&["--require-key", "/nonexistent/key", "info"]);
    assert!(text.contains("/nonexistent/key"), "{text}");
}

/// The same, said once for all in the board's file; the key lies beside it.
#[test]
fn a_board_file_requires_a_key_beside_it() {
    let desk = Desk::new();
    let (signer, _) = own_key(&desk);
    let board = "[pci]\nvendor = 0x12AE\ndevice = 2\n[boot]\nrequire_key = \"mine.pub\"\n";
    let board = desk.file("board.toml", board.as_bytes());
    let open = desk.image("open", 2, 1);
    let mine = desk.signed("mine", 2, 2, 0, &signer);
    let text = desk.refuses(&["--board", &board, "install", &open]);
    assert!(text.contains("with the development key"), "{text}");
    let text = desk.refuses(&["--board", &board, "install", &desk.image("fibre", 1, 1)]);
    assert!(text.contains("this is 12ae:0002"), "{text}");
    let said = desk.says(&["--board", &board, "install", &mine]);
    assert!(
        said.ends_with("signature: key fd1724385aa0c75b\n"),
        "{said}"
    );
    desk.file("mine.pub", b"no key");
    let text = desk.refuses(&["--board", &board, "info"]);
    assert!(text.contains("mine.pub holds no key"), "{text}");
}

/// What was confirmed is not followed by something older, unless that is asked for.
#[test]
fn an_older_image_is_refused_unless_a_downgrade_is_allowed() {
    let desk = Desk::new();
    let old = desk.signed("old", 1, 1, 4, &development());
    let new = desk.signed("new", 1, 2, 5, &development());
    desk.says(&["install", &old, "--confirmed"]);
    let backup = desk.path("backup").display().to_string();
    desk.says(&["backup", &backup]);
    desk.says(&["install", &new]);
    assert!(
        desk.says(&["info"]).contains("rollback counter 4"),
        "on trial"
    );
    desk.says(&["confirm", "1"]);
    let info = desk.says(&["info"]);
    assert!(
        info.contains("rollback counter 5") && info.contains("counter 4,"),
        "{info}"
    );

    for words in [
        vec!["install", &old],
        vec!["prefer", "0"],
        vec!["restore", &backup],
    ] {
        let text = desk.refuses(&words);
        assert!(text.contains("counter is 4, the card's 5"), "{text}");
        assert!(text.contains("--allow-downgrade"), "{text}");
    }
    let said = desk.says(&["install", &old, "--allow-downgrade"]);
    assert!(said.starts_with("installed in slot 0"), "{said}");
    desk.says(&["prefer", "1"]);
    desk.says(&["prefer", "0", "--allow-downgrade"]);
    assert!(
        desk.says(&["info"]).contains("rollback counter 5"),
        "it never falls"
    );
    desk.says(&["restore", &backup, "--allow-downgrade"]);
    assert!(
        desk.says(&["info"]).contains("rollback counter 4"),
        "as in the backup"
    );
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
        let output = Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
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
    let written = Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
        .arg("man")
        .arg(&pages)
        .status();
    assert!(written.expect("the command runs").success());
    for (page, words) in [
        ("tigonctl.1", "Controls a Tigon II card"),
        ("tigonctl-capture.1", "capture"),
        ("tigonctl-flash-verify.1", "verify"),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).expect(page);
        assert!(text.starts_with(".ie") && text.contains(".TH "), "{page}");
        assert!(text.contains(words), "{page}: {text}");
    }
}
