//! Tests a KVM device that does not work: the guest boots all the same, with TCG.

use integration_tests::guest::playbill::Scene;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;
use testbed::guest::machine::Accelerator;
use testbed::guest::{Guest, GuestOptions, GuestTools};

/// A machine on which KVM is of no use.
pub struct UselessKvm {
    folder: TempDir,
    tools: GuestTools,
}

impl Scene for UselessKvm {
    fn raise() -> Self {
        UselessKvm {
            folder: TempDir::new().expect("a folder"),
            tools: GuestTools::from_environment().unwrap_or_else(|error| panic!("{error:#}")),
        }
    }

    fn inspect(&mut self) {}

    fn testimony(&self) -> String {
        String::new()
    }
}

impl UselessKvm {
    /// Starts a guest by a QEMU that does this when it is asked for KVM.
    fn start(&self, with_kvm: &str) -> Guest {
        let qemu = self.folder.path().join("qemu");
        let real = self.tools.qemu.display();
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' -accel kvm '*) {with_kvm} ;; esac\n\
             exec '{real}' \"$@\"\n"
        );
        write_program(&qemu, &script);
        let tools = GuestTools {
            qemu,
            ..self.tools.clone()
        };
        let options = GuestOptions {
            kvm: true,
            ..GuestOptions::default()
        };
        Guest::start(&tools, &options).unwrap_or_else(|error| panic!("{error:#}"))
    }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).expect("the folder can be written");
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("it is ours");
}

fn is_up_by_tcg(guest: &Guest) {
    assert_eq!(guest.accelerator(), Accelerator::Tcg);
    let said = guest.sh("echo up").expect("the guest answers");
    assert_eq!(said, "up");
}

/// As on a machine without `/dev/kvm`.
pub fn kvm_that_is_refused_is_done_without(machine: &mut UselessKvm) {
    is_up_by_tcg(&machine.start("echo 'no KVM here' >&2; exit 1"));
}

/// As under a hypervisor whose own guests never come up.
pub fn kvm_that_hangs_is_given_up(machine: &mut UselessKvm) {
    is_up_by_tcg(&machine.start("exec sleep 600"));
}
