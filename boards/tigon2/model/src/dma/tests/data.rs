//! Effects of a transfer: byte order, wrap, sums, pointers of the MAC.

use super::*;
use proptest::prelude::*;

/// Reference 6.4: state bit 1 = 1 keeps the value of every 32-bit word, = 0 keeps the order
/// of the bytes, with any alignment and length on both sides (C!).
#[test]
fn the_two_byte_orders() {
    let mut bench = bench();
    fill_host(&mut bench, 0, &0x1122_3344u32.to_le_bytes());
    queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    queue_read(&mut bench, &descriptor(HOST_BASE + 1, 0x6013, 3, 0));
    bench.run();
    assert_eq!(bench.word(0x6000), 0x1122_3344);
    assert_eq!(bench.bytes(0x6012, 5), [0, 0x33, 0x22, 0x11, 0]);

    bench.set_word(0x7000, 0xAABB_CCDD);
    queue_write(&mut bench, &descriptor(HOST_BASE + 0x14, 0x7000, 4, 2));
    queue_write(&mut bench, &descriptor(HOST_BASE + 0x21, 0x7001, 3, 0));
    bench.run();
    assert_eq!(bench.host.word(HOST_BASE + 0x14), Ok(0xAABB_CCDD));
    assert_eq!(bench.host.bytes[0x20..0x25], [0, 0xBB, 0xCC, 0xDD, 0]);
}

/// Reference 6.1: bit 17 of a read sets TxPrd to the local end address (C!); the last of a
/// frame's fragments carries it.
#[test]
fn end_of_frame_moves_the_transmit_producer() {
    let mut bench = bench();
    queue_read(&mut bench, &descriptor(HOST_BASE, TX_BASE, 42, 0));
    bench.run();
    assert_eq!(bench.read(R::TxProducer), TX_BASE);
    queue_read(
        &mut bench,
        &descriptor(HOST_BASE, TX_BASE + 42, 100, 0x2_0000),
    );
    bench.run();
    assert_eq!(bench.read(R::TxProducer), TX_BASE + 142);
    // Reference 13: a write with bit 17 (vendor sets it on all) moves nothing.
    queue_write(&mut bench, &descriptor(HOST_BASE, 0x6000, 8, 0x2_0002));
    bench.run();
    assert_eq!(bench.read(R::TxProducer), TX_BASE + 142);
}

/// Reference 6.1: bit 19 of a write frees RX buffer: RxCon becomes the local end address
/// (C!); so it is for direct transfers, which CPU B makes in software-assist mode (15).
#[test]
fn free_rx_buffer_moves_the_receive_consumer() {
    let mut bench = bench();
    queue_write(
        &mut bench,
        &descriptor(HOST_BASE, RX_BASE + 8, 60, 0xA_0000),
    );
    bench.run();
    assert_eq!(bench.read(R::RxConsumer), RX_BASE + 68);
    // BDs and indices go without the bit and free nothing.
    queue_write(&mut bench, &descriptor(HOST_BASE, 0x6000, 8, 0x2_0002));
    bench.run();
    assert_eq!(bench.read(R::RxConsumer), RX_BASE + 68);
    bench.write(R::DmaWriteHostHigh, (HOST_BASE >> 32) as u32);
    bench.write(R::DmaWriteHostLow, HOST_BASE as u32);
    bench.write(R::DmaWriteLocal, 0x1F_FFF8);
    bench.write(R::DmaWriteLength, 16);
    bench.write(R::DmaWriteState, 0xA_0004);
    bench.run();
    assert_eq!(bench.read(R::RxConsumer), RX_BASE + 8, "and wraps with it");
    assert_eq!(bench.read(R::DmaWriteLocal), RX_BASE + 8);
}

/// Reference 6.4: a read that reaches RxBase continues at TxBase (C).
#[test]
fn a_read_wraps_in_the_transmit_buffer() {
    let mut bench = bench();
    let data: Vec<u8> = (1..=64).collect();
    fill_host(&mut bench, 0, &data);
    queue_read(
        &mut bench,
        &descriptor(HOST_BASE, RX_BASE - 24, 64, 0x2_0000),
    );
    bench.run();
    assert_eq!(bench.bytes(RX_BASE - 24, 24), data[..24]);
    assert_eq!(bench.bytes(TX_BASE, 40), data[24..]);
    assert_eq!(bench.read(R::TxProducer), TX_BASE + 40);
    assert_eq!(bench.bytes(RX_BASE, 8), [0; 8]);
}

/// Reference 6.1 and 6.5: with bit 9 the bytes are summed; the sum continues over descriptors until
/// bit 10; bit 11 stores it at word 5, e.g. the descriptor's own byte 22 (C!).
#[test]
fn sums_over_a_gathered_frame() {
    let mut bench = bench();
    let data: Vec<u8> = (0..99u32).map(|n| (n * 7 + 3) as u8).collect();
    fill_host(&mut bench, 0, &data);
    // Junk in the sum from earlier, then a frame in three odd pieces.
    bench.write(R::DmaReadChecksum, 0x1234);
    queue_read(&mut bench, &descriptor(HOST_BASE, TX_BASE, 33, 0x600));
    queue_read(
        &mut bench,
        &descriptor(HOST_BASE + 33, TX_BASE + 33, 32, 0x200),
    );
    let mut last = descriptor(HOST_BASE + 65, TX_BASE + 65, 34, 0x2_0A00);
    last.checksum_target = bench.read(R::AssistReadNextFree) + 22;
    let address = queue_read(&mut bench, &last);
    bench.run();
    let expected = crate::dma::add_bytes(0, 0, &data);
    assert_eq!(bench.read(R::DmaReadChecksum), u32::from(expected));
    assert_eq!(bench.bytes(address + 22, 2), expected.to_be_bytes());
    // Reference 6.5: nothing is added while bit 9 is 0.
    queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 8, 2));
    bench.run();
    assert_eq!(bench.read(R::DmaReadChecksum), u32::from(expected));
}

/// Reference 6.5: a write sums the bytes that it reads from NIC memory, and exactly those: the
/// CRC behind them is not in it (C). Bit 11 stores the sum for a write, too (6.1, 14, C).
#[test]
fn the_receive_sum() {
    let mut bench = bench();
    let data: Vec<u8> = (0..65).collect();
    bench.set_bytes(RX_BASE, &data);
    let mut write = descriptor(HOST_BASE, RX_BASE, 61, 0xA_0E00);
    write.checksum_target = bench.read(R::AssistWriteNextFree) + 22;
    let address = queue_write(&mut bench, &write);
    bench.run();
    let expected = crate::dma::add_bytes(0, 0, &data[..61]);
    assert_eq!(bench.read(R::DmaWriteChecksum), u32::from(expected));
    assert_eq!(bench.word(address + 20) & 0xFFFF, u32::from(expected));
}

proptest! {
    /// Reference 6.4: with state bit 1 = 0 bytes keep their order for every alignment of both
    /// sides and every length, 9014-byte frames and 16 KB blocks included (C).
    #[test]
    fn bytes_keep_their_order_at_every_alignment(
        host in 0u64..16,
        local in 0u32..16,
        length in prop_oneof![1u32..40, Just(9014), Just(0x4000), 1u32..0x4000],
    ) {
        let mut bench = bench();
        let data: Vec<u8> = (0..length).map(|n| (n * 31 + n / 256) as u8 | 1).collect();
        fill_host(&mut bench, host as usize, &data);
        queue_read(&mut bench, &descriptor(HOST_BASE + host, TX_BASE + local, length, 0));
        bench.run();
        prop_assert_eq!(&bench.bytes(TX_BASE + local, data.len()), &data);
        prop_assert_eq!(bench.bytes(TX_BASE, local as usize), vec![0; local as usize]);
        prop_assert_eq!(bench.bytes(TX_BASE + local + length, 4), [0; 4]);
        let back = 0x8_0000 + 15 - host;
        queue_write(&mut bench, &descriptor(HOST_BASE + back, TX_BASE + local, length, 0));
        bench.run();
        let end = back as usize + data.len();
        prop_assert_eq!(&bench.host.bytes[back as usize..end], data.as_slice());
        prop_assert_eq!(bench.host.bytes[back as usize - 1], 0);
        prop_assert_eq!(bench.host.bytes[end], 0);
    }

    /// Reference 6.4: with state bit 1 = 1 every word keeps its value, wherever the two
    /// addresses stand modulo 8 (C).
    #[test]
    fn words_keep_their_values_at_every_alignment(
        host in 0u64..4,
        local in 0u32..4,
        words in prop::collection::vec(any::<u32>(), 1..300),
    ) {
        let mut bench = bench();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fill_host(&mut bench, 4 * host as usize, &bytes);
        let (host, local) = (HOST_BASE + 4 * host, 0x6000 + 4 * local);
        let length = bytes.len() as u32;
        queue_read(&mut bench, &descriptor(host, local, length, 2));
        bench.run();
        for (n, word) in (0..).zip(&words) {
            prop_assert_eq!(bench.word(local + 4 * n), *word);
        }
        queue_write(&mut bench, &descriptor(host + 0x8004, local, length, 2));
        bench.run();
        for (n, word) in (0..).zip(&words) {
            prop_assert_eq!(bench.host.word(host + 0x8004 + 4 * n), Ok(*word));
        }
    }
}
