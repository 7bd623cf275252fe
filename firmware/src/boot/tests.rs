use super::transmit_bytes;

#[test]
fn the_transmit_share_is_in_64ths_and_kept_within_bounds() {
    let bytes = 0xC_C000;
    for share in 8..=56 {
        assert_eq!(
            transmit_bytes(bytes, share),
            bytes / 64 * share / 8 * 8,
            "{share}"
        );
    }
    assert_eq!(transmit_bytes(bytes, 0), transmit_bytes(bytes, 21));
    assert_eq!(transmit_bytes(bytes, 1), transmit_bytes(bytes, 8));
    assert_eq!(transmit_bytes(bytes, u32::MAX), transmit_bytes(bytes, 56));
}
