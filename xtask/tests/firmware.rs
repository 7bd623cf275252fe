//! The firmware builds, has only allowed instructions, and fits.

use host_interface::image::Image;
use xtask::firmware::{self, FirmwareOptions, isa};

#[test]
fn the_firmware_builds_and_fits() {
    let options = FirmwareOptions {
        quiet: true,
        ..FirmwareOptions::default()
    };
    let artifacts = firmware::build(options).expect("the firmware builds");

    let elf = std::fs::read(&artifacts.elf).expect("the ELF");
    assert_eq!(isa::check(&elf).expect("an ELF"), []);
    for memory in &artifacts.sizes.memories {
        assert!(memory.used <= memory.there, "{memory}");
    }

    let file = std::fs::read(&artifacts.tg2).expect("the image");
    let image = Image::parse(&file).expect("the drivers' format");
    assert_eq!((image.start(), image.load()), (0x4000, 0x4000));
}
