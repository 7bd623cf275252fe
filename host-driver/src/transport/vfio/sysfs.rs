//! Finds the VFIO group of a PCI address.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::super::TransportError;

/// The kernel driver that a function must be bound to.
const DRIVER: &str = "vfio-pci";

/// The address of a PCI function: domain, bus, device, function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.{}",
            self.domain, self.bus, self.device, self.function
        )
    }
}

impl FromStr for PciAddress {
    type Err = String;

    /// Parses `0000:00:03.0`, or `00:03.0` for domain 0.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no PCI address, such as 0000:00:03.0");
        let hex = |part: &str, most: usize, limit: u32| {
            let plain = (1..=most).contains(&part.len())
                && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = u32::from_str_radix(part, 16).map_err(|_| wrong())?;
            if plain && number <= limit {
                Ok(number)
            } else {
                Err(wrong())
            }
        };
        let (rest, function) = text.rsplit_once('.').ok_or_else(wrong)?;
        let (rest, device) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
        Ok(Self {
            domain: hex(domain, 8, u32::MAX)?,
            bus: hex(bus, 2, 0xFF)? as u8,
            device: hex(device, 2, 0x1F)? as u8,
            function: hex(function, 1, 7)? as u8,
        })
    }
}

/// A VFIO group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The file below `/dev/vfio`.
    pub path: PathBuf,
    /// Whether there is no IOMMU: the card reaches all memory, by physical addresses.
    pub without_iommu: bool,
}

/// Finds the group of a function. `sys` and `dev` are `/sys` and `/dev`; tests use other paths.
pub fn find_group(sys: &Path, dev: &Path, address: PciAddress) -> Result<Group, TransportError> {
    let unreachable = |reason: String| TransportError::Unreachable {
        place: format!("PCI address {address}"),
        reason,
    };
    let function = sys.join("bus/pci/devices").join(address.to_string());
    if !function.is_dir() {
        return Err(unreachable("there is no such PCI function".into()));
    }
    let last = |link: &str| {
        let target = std::fs::read_link(function.join(link)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    };
    match last("driver") {
        Some(driver) if driver == DRIVER => {}
        other => {
            let now = other.map_or("no driver".to_owned(), |name| format!("the driver {name}"));
            return Err(unreachable(format!(
                "it is bound to {now}, not to {DRIVER}: modprobe {DRIVER}; \
                 echo {DRIVER} > {function}/driver_override; \
                 echo {address} > {function}/driver/unbind (if it has one); \
                 echo {address} > /sys/bus/pci/drivers_probe",
                function = function.display(),
            )));
        }
    }
    let number = last("iommu_group")
        .ok_or_else(|| unreachable("the kernel has put it into no IOMMU group".into()))?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unreachable(format!(
            "its IOMMU group {number} is no number"
        )));
    }
    let with = dev.join("vfio").join(&number);
    let without = dev.join("vfio").join(format!("noiommu-{number}"));
    if with.exists() {
        Ok(Group {
            path: with,
            without_iommu: false,
        })
    } else if without.exists() {
        Ok(Group {
            path: without,
            without_iommu: true,
        })
    } else {
        Err(unreachable(format!(
            "neither {} nor {} is there",
            with.display(),
            without.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn address(text: &str) -> PciAddress {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_are_read_and_written_as_the_kernel_does() {
        for (text, full) in [
            ("0000:00:03.0", "0000:00:03.0"),
            ("00:1f.7", "0000:00:1f.7"),
            ("3:2.1", "0000:03:02.1"),
            ("10000:ff:1F.2", "10000:ff:1f.2"),
        ] {
            assert_eq!(address(text).to_string(), full);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for wrong in [
            "",
            "0000:00:03",
            "00.0",
            "00:20.0",
            "00:03.8",
            "100:00:03.0.0",
            "0:+3.0",
            "g0:03.0",
            "00:003.0",
            "000000000:00:03.0",
            "../../etc",
            "00:03.0\n",
            "-1:03.0",
        ] {
            let error = wrong.parse::<PciAddress>().expect_err(wrong);
            assert!(error.contains("0000:00:03.0"), "{error}");
        }
    }

    /// A machine with one function.
    fn machine(driver: Option<&str>, group: Option<&str>, file: Option<&str>) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let function = root.path().join("sys/bus/pci/devices/0000:00:03.0");
        fs::create_dir_all(&function).expect("a folder");
        fs::create_dir_all(root.path().join("dev/vfio")).expect("a folder");
        if let Some(driver) = driver {
            let target = format!("../../drivers/{driver}");
            symlink(target, function.join("driver")).expect("a link");
        }
        if let Some(group) = group {
            let target = format!("../../../../kernel/iommu_groups/{group}");
            symlink(target, function.join("iommu_group")).expect("a link");
        }
        if let Some(file) = file {
            fs::write(root.path().join("dev/vfio").join(file), "").expect("a file");
        }
        root
    }

    fn find(root: &tempfile::TempDir, text: &str) -> Result<Group, String> {
        let (sys, dev) = (root.path().join("sys"), root.path().join("dev"));
        find_group(&sys, &dev, address(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_group_is_found_with_and_without_an_iommu() {
        let root = machine(Some("vfio-pci"), Some("12"), Some("12"));
        let group = find(&root, "00:03.0").expect("a group");
        assert!(group.path.ends_with("dev/vfio/12") && !group.without_iommu);
        let root = machine(Some("vfio-pci"), Some("0"), Some("noiommu-0"));
        let group = find(&root, "00:03.0").expect("a group");
        assert!(group.path.ends_with("noiommu-0") && group.without_iommu);
    }

    #[test]
    fn each_thing_that_is_missing_is_named() {
        for (driver, group, file, text, what) in [
            (None, None, None, "00:04.0", "no such PCI function"),
            (None, None, None, "00:03.0", "no driver"),
            (
                Some("acenic"),
                Some("1"),
                Some("1"),
                "00:03.0",
                "the driver acenic",
            ),
            (Some("vfio-pci"), None, None, "00:03.0", "no IOMMU group"),
            (Some("vfio-pci"), Some("1"), None, "00:03.0", "neither"),
            (Some("vfio-pci"), Some("x"), None, "00:03.0", "no number"),
        ] {
            let error = find(&machine(driver, group, file), text).expect_err(what);
            assert!(error.contains(what), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
