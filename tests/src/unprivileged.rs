//! Runs `cargo xtask` as a user without privileges, on several kinds of machines.

use crate::xtask_command::xtask;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const RUNNER: &str = "xtask";

/// What of a machine decides how a lack of privilege shows.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Everybody may open the TAP device, as where udev has made it.
    pub tap_for_all: bool,
    /// Somebody has made a network namespace before.
    pub namespaces: bool,
}

/// The usual one.
pub const TAP_FOR_ALL: Machine = Machine {
    tap_for_all: true,
    namespaces: true,
};

impl Machine {
    /// All that there are.
    pub fn every() -> impl Iterator<Item = Machine> {
        [true, false].into_iter().flat_map(|tap_for_all| {
            [true, false].map(|namespaces| Machine {
                tap_for_all,
                namespaces,
            })
        })
    }

    /// The steps that make this machine such a one, in a mount namespace of their own.
    fn script(self) -> String {
        let mode = if self.tap_for_all { "666" } else { "600" };
        let namespaces = if self.namespaces {
            "mkdir /run/netns"
        } else {
            "true"
        };
        format!(
            "set -e; mount -t tmpfs -o mode=755 none /run; {namespaces}; mkdir -p /dev/net; \
             mount -t tmpfs none /dev/net; mknod /dev/net/tun c 10 200; \
             chmod {mode} /dev/net/tun; \
             exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\""
        )
    }
}

/// A user without privileges, who may start the runner wherever the clone lies.
pub struct Nobody {
    folder: TempDir,
}

impl Nobody {
    /// Copies the runner to where everybody may go.
    ///
    /// # Panics
    /// Without room for it.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Nobody {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755));
        let runner = folder.path().join(RUNNER);
        std::fs::copy(xtask(&[]).get_program(), &runner).expect("room");
        open(&runner)
            .and(open(folder.path()))
            .expect("both are ours");
        Nobody { folder }
    }

    /// The user's command line on such a machine. Where the tests have no privileges
    /// themselves, they are that user, and the machine is what it is.
    pub fn command(&self, machine: Machine, words: &[&str]) -> Command {
        let own = xtask(words);
        if !rustix::process::geteuid().is_root() {
            return own;
        }
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--", "sh", "-c", &machine.script(), "sh"])
            .arg(self.folder.path().join(RUNNER))
            .args(words);
        if let Some(folder) = own.get_current_dir() {
            command.current_dir(folder);
        }
        command
    }
}
