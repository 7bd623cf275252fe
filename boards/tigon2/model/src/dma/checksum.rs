//! The checksum unit: a one's-complement sum of transferred bytes.
//!
//! Hardware reference, section 6.5. Bytes are summed as big-endian 16-bit words; a byte's NIC
//! address decides whether it is the high or the low one; carries are folded; the result is not
//! inverted.

/// Continues `sum` over `bytes`, the first of which is at NIC address `local` (6.5, C).
pub fn add_bytes(sum: u16, local: u32, bytes: &[u8]) -> u16 {
    let (odd, aligned) = if local & 1 == 1 && !bytes.is_empty() {
        (u64::from(bytes[0]), &bytes[1..])
    } else {
        (0, bytes)
    };
    let mut total = u64::from(sum) + odd;
    let mut pairs = aligned.chunks_exact(2);
    for pair in &mut pairs {
        total += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    if let [last] = pairs.remainder() {
        total += u64::from(*last) << 8;
    }
    while total > 0xFFFF {
        total = (total & 0xFFFF) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 6.5: the sum over an IP header with its valid checksum is 0xFFFF (13, C).
    #[test]
    fn a_valid_ip_header_sums_to_all_ones() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xB8, 0x61, 0xC0, 0xA8,
            0x00, 0x01, 0xC0, 0xA8, 0x00, 0xC7,
        ];
        assert_eq!(add_bytes(0, 0x1000, &header), 0xFFFF);
    }

    /// Reference 6.5: byte position is decided by the NIC address' parity (C).
    #[test]
    fn an_odd_start_is_a_low_byte() {
        assert_eq!(add_bytes(0, 1, &[0x12]), 0x0012);
        assert_eq!(add_bytes(0, 2, &[0x12]), 0x1200);
        assert_eq!(add_bytes(0, 1, &[0x12, 0x34, 0x56]), 0x0012 + 0x3456);
    }

    /// Reference 6.5: a frame gathered from fragments yields one sum, whatever the cuts,
    /// odd ones included (C!).
    #[test]
    fn fragments_sum_like_the_whole() {
        let bytes: Vec<u8> = (0..251u32).map(|n| (n * 37) as u8).collect();
        let whole = add_bytes(0, 6, &bytes);
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let sum = add_bytes(add_bytes(0, 6, first), 6 + cut as u32, second);
            assert_eq!(sum, whole, "cut at {cut}");
        }
    }

    #[test]
    fn carries_are_folded() {
        assert_eq!(add_bytes(0xFFFF, 0, &[0x00, 0x01]), 1);
        assert_eq!(add_bytes(0, 0, &[0xFF; 65534]), 0xFFFF);
    }
}
