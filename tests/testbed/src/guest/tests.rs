use super::*;

/// A changed firmware image rebuilds nothing: it is a file of the small
/// archive behind the large one.
#[test]
fn the_firmware_is_where_the_driver_looks() {
    let options = GuestOptions {
        firmware: b"image".to_vec(),
        ..GuestOptions::default()
    };
    let files = archive::tests::list(&own_files(&options).expect("an archive"));
    assert_eq!(files["lib/firmware/acenic/tg2.bin"].1, b"image");
}
