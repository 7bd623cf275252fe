//! Tests the card's DMA to the guest's memory.

use crate::fake::{DMA_ADDRESS, DMA_NOW, FakeCard};
use crate::pc::{BAR, MEMORY_BYTES, Memory, Pc, tools_or_skip};
use vfio_user_nic::DmaError;

/// Where the BIOS area starts that the chip set maps to memory or not.
const SHADOW: u64 = 0xC_0000;

fn both_ways(memory: Memory) {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, memory, &[&card]);
    let data: Vec<u8> = (0..=255).cycle().take(9014).collect();
    let address = 0x12_3457;
    let by_messages = card.dma.waits(address, data.len());
    assert_eq!(
        by_messages,
        memory == Memory::Private,
        "sealed memory is mapped"
    );
    assert_eq!(card.dma.write(address, &data), Ok(()));
    for (i, byte) in data.iter().enumerate().step_by(1001) {
        assert_eq!(pc.read('b', address + i as u64), u64::from(*byte));
    }
    pc.write('q', 0x20_0000, 0x8877_6655_4433_2211);
    let mut word = [0; 8];
    assert_eq!(card.dma.read(0x20_0000, &mut word), Ok(()));
    assert_eq!(word, [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    // The last byte is there, the one behind it is not.
    assert_eq!(card.dma.write(MEMORY_BYTES - 1, &[1]), Ok(()));
    let end = card.dma.write(MEMORY_BYTES, &[1]);
    assert_eq!(end, Err(DmaError::Unmapped(MEMORY_BYTES)));
    let registers = card.dma.read(BAR, &mut word);
    assert_eq!(registers, Err(DmaError::Unmapped(BAR)), "no memory");
}

#[test]
fn shared_memory_is_mapped() {
    both_ways(Memory::Shared);
}

#[test]
fn memory_of_the_pc_alone_goes_by_messages() {
    both_ways(Memory::Private);
}

/// The PC waits for the card's answer, and the card for the PC's memory.
#[test]
fn a_card_that_reads_memory_before_it_answers_is_served() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Private, &[&card]);
    for i in 0..50_u64 {
        pc.write('l', 0x3000 + 4 * i, 0x1000 + i);
        pc.write('l', BAR + u64::from(DMA_ADDRESS), 0x3000 + 4 * i);
        assert_eq!(pc.read('l', BAR + u64::from(DMA_NOW)), 0x1000 + i);
    }
}

/// A PC's chip set turns memory under the BIOS on and off; firmware does so at each start.
#[test]
fn memory_that_comes_and_goes_is_followed() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    for _ in 0..5 {
        // The host bridge's PAM registers: memory, for reading and writing.
        for register in 0x90..=0x96 {
            pc.config_write_byte(0, register, 0x33);
        }
        assert_eq!(card.dma.write(SHADOW, &[0x77]), Ok(()));
        assert_eq!(pc.read('b', SHADOW), 0x77);
        for register in 0x90..=0x96 {
            pc.config_write_byte(0, register, 0x11);
        }
        let denied = card.dma.write(SHADOW, &[0x78]);
        assert_eq!(denied, Err(DmaError::Denied(SHADOW)), "for reading only");
        assert_eq!(pc.read('b', SHADOW), 0x77);
    }
}
