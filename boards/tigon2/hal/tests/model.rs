//! Tests the HAL on a host, against the hardware model.

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{OutputPin, StatefulOutputPin};
use embedded_hal::i2c::{Error, ErrorKind, I2c};
use tigon2_chip::bits::DmaState;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_chip::{Cpu, Register, eeprom};
use tigon2_hal::assist::{DescriptorRing, Full, HostAddress, Transfer};
use tigon2_hal::assist::{ReadChannel, WriteChannel};
use tigon2_hal::eeprom::EepromBus;
use tigon2_hal::events::{Core, Dispatch, priority};
use tigon2_hal::led::{Led, Which};
use tigon2_hal::mac::{ReceiveRing, TransmitBuffer, TransmitRing};
use tigon2_hal::resources::Resources;
use tigon2_hal::timer::Delay;
use tigon2_hal::{Bus, semaphore, timer};
use tigon2_model::testing::{Bench, HOST_BASE, K, RX_BASE, STATION, TX_BASE};

/// A card on the bench as CPU A's bus; each register access takes 100 ns.
struct ModelBus {
    bench: Bench,
    /// Whether the card works on its queues by itself.
    works: bool,
    core: Core,
}

impl ModelBus {
    fn new() -> ModelBus {
        let mut bench = Bench::default();
        bench.bring_up();
        ModelBus {
            bench,
            works: true,
            core: Core::new(Cpu::A, true),
        }
    }

    fn tick(&mut self) {
        self.bench.pass(100);
        if self.works {
            self.bench.run();
        }
    }
}

impl Bus for ModelBus {
    fn read(&mut self, register: Register) -> u32 {
        self.tick();
        self.bench.read(register)
    }

    fn write(&mut self, register: Register, value: u32) {
        self.bench.write(register, value);
        self.tick();
    }

    fn load(&mut self, address: u32) -> u32 {
        self.bench.word(address)
    }

    fn store(&mut self, address: u32, value: u32) {
        self.bench.set_word(address, value);
    }

    fn load_half(&mut self, address: u32) -> u16 {
        let bytes = self.bench.bytes(address, 2);
        u16::from_be_bytes([bytes[0], bytes[1]])
    }

    fn store_half(&mut self, address: u32, value: u16) {
        self.bench.set_bytes(address, &value.to_be_bytes());
    }

    fn load_byte(&mut self, address: u32) -> u8 {
        self.bench.bytes(address, 1)[0]
    }

    fn store_byte(&mut self, address: u32, value: u8) {
        self.bench.set_bytes(address, &[value]);
    }
}

/// Reference 9 and "Serial EEPROM, confirmed": select, two address bytes, repeated start.
#[test]
fn the_eeprom_is_read_over_its_two_wires() {
    let mut bus = ModelBus::new();
    let address = [0x00, 0x60, 0xCF, 0x11, 0x22, 0x33];
    bus.bench.card.set_mac_address(address);
    let mut block = [0xEE; eeprom::MAC_BLOCK_BYTES];
    let place = eeprom::MAC_OFFSET.to_be_bytes();
    let mut i2c = EepromBus(&mut bus);
    i2c.write_read(eeprom::BUS_ADDRESS, &place, &mut block)
        .expect("acknowledged");
    assert_eq!(block, eeprom::mac_block(address));
}

#[test]
fn a_device_that_is_not_there_does_not_acknowledge() {
    let mut bus = ModelBus::new();
    let error = EepromBus(&mut bus)
        .write(0x23, &[0])
        .expect_err("nobody there");
    assert!(matches!(error.kind(), ErrorKind::NoAcknowledge(_)));
    // The bus is usable afterwards: the failed transfer ended with a STOP.
    EepromBus(&mut bus)
        .write(eeprom::BUS_ADDRESS, &[0, 0])
        .expect("acknowledged");
}

/// Reference 7: the counter runs in microseconds of 86 core clocks, 2 % short at 88 MHz.
#[test]
fn delays_take_their_time() {
    let mut bus = ModelBus::new();
    let before = bus.bench.now;
    Delay(&mut bus).delay_us(50);
    let us = bus.bench.now - before;
    assert!((48_800..60_000).contains(&us), "{us} ns");
    let before = bus.bench.now;
    Delay(&mut bus).delay_ns(10_000);
    let ns = bus.bench.now - before;
    assert!((9_700..30_000).contains(&ns), "{ns} ns");
}

/// Reference 7: the event comes when the counter reaches the reference, and a deadline in
/// the past is not missed.
#[test]
fn the_timer_event_comes_at_its_deadline() {
    let mut bus = ModelBus::new();
    let is_on = |bus: &mut ModelBus| bus.read(Register::EventA) & EventBit::Timer.mask() != 0;
    let now = timer::now(&mut bus);
    timer::arm(&mut bus, Cpu::A, now, now + 20);
    assert!(!is_on(&mut bus));
    bus.bench.pass(25_000);
    assert!(is_on(&mut bus));
    let now = timer::now(&mut bus);
    timer::arm(&mut bus, Cpu::A, now, now.wrapping_sub(1000));
    bus.bench.pass(5_000);
    assert!(is_on(&mut bus));
    assert!(timer::reached(5, u32::MAX - 5) && !timer::reached(u32::MAX - 5, 5));
}

/// Reference 4: acquire, release, and freeing what another life left.
#[test]
fn the_semaphore_has_one_owner() {
    let mut bus = ModelBus::new();
    semaphore::free(&mut bus);
    semaphore::acquire(&mut bus, Cpu::B);
    assert!(semaphore::is_owned(&mut bus, Cpu::B) && !semaphore::is_owned(&mut bus, Cpu::A));
    bus.write(Register::SemaphoreA, 1);
    assert!(!semaphore::is_owned(&mut bus, Cpu::A), "B owns it");
    semaphore::free(&mut bus);
    assert!(!semaphore::is_owned(&mut bus, Cpu::B));
    semaphore::acquire(&mut bus, Cpu::A);
    semaphore::release(&mut bus, Cpu::A);
    assert!(!semaphore::is_owned(&mut bus, Cpu::A));
}

impl Dispatch for ModelBus {
    type ReadChannel = ReadChannel;
    type WriteChannel = WriteChannel;

    fn core<R>(&mut self, use_it: impl FnOnce(&mut Core) -> R) -> R {
        use_it(&mut self.core)
    }

    fn call(&mut self, entry: u32, _: u32) -> u32 {
        panic!("no code at {entry:#x}")
    }
}

/// What the CPU's loop would take next; 0 for nothing.
fn pending(bus: &mut ModelBus, register: Register) -> u32 {
    let events = bus.read(register);
    priority(events, bus.core.mask)
}

/// Reference 5: software bits that are always on, with the mask as their gate; hardware
/// bits are levels.
#[test]
fn software_events_are_gated_by_the_mask() {
    let mut bus = ModelBus::new();
    bus.prepare(Cpu::A);
    assert_eq!(pending(&mut bus, Register::EventA), 0);
    bus.set(EventBit::SendBdReady);
    bus.set(EventBit::SendDataReady);
    assert_eq!(pending(&mut bus, Register::EventA), 5);
    bus.clear(EventBit::SendBdReady);
    assert!(!bus.is_set(EventBit::SendBdReady) && bus.is_set(EventBit::SendDataReady));
    assert_eq!(pending(&mut bus, Register::EventA), 4);
    bus.set(EventBit::Mailbox);
    assert_eq!(pending(&mut bus, Register::EventA), 4, "no mailbox rang");
    bus.bench.bar_write(0x50C, 1);
    assert_eq!(pending(&mut bus, Register::EventA), 23);
    assert_eq!(priority(0x18, u32::MAX), 5);
    assert_eq!(priority(0x18, 8), 4);
    assert_eq!(priority(0x18, 1), 0);
}

/// Reference 5: each CPU's register has software bits of its own, so a bell rings one CPU,
/// as often as one likes, until that answers.
#[test]
fn a_doorbell_rings_the_other_cpu_until_it_answers() {
    for side in Cpu::ALL {
        let mut bus = ModelBus::new();
        bus.core = Core::new(side, false);
        let bell = EventBit::doorbell(side).number() + 1;
        bus.prepare(side);
        assert_eq!(pending(&mut bus, Register::event(side)), 0);
        bus.ring(side.other());
        assert_eq!(pending(&mut bus, Register::event(side)), 0, "not itself");
        bus.ring(side);
        bus.ring(side);
        assert_eq!(pending(&mut bus, Register::event(side)), bell);
        bus.answer(side);
        assert_eq!(pending(&mut bus, Register::event(side)), 0);

        // Alone, the bell is an event like any other.
        bus.core = Core::new(Cpu::A, true);
        bus.prepare(side);
        bus.ring(side);
        assert_eq!(pending(&mut bus, Register::EventA), bell);
        bus.answer(side);
        assert_eq!(pending(&mut bus, Register::EventA), 0);
    }
}

/// Reference 7: alone, one reference serves the deadlines of both sides.
#[test]
fn the_first_deadline_of_both_sides_counts() {
    let mut bus = ModelBus::new();
    let now = timer::now(&mut bus);
    bus.arm(Cpu::A, now, now + 1000);
    bus.arm(Cpu::B, now, now + 20);
    bus.bench.pass(25_000);
    assert_ne!(bus.read(Register::EventA) & EventBit::Timer.mask(), 0);
    let now = timer::now(&mut bus);
    bus.arm(Cpu::B, now, now + 2000);
    bus.bench.pass(25_000);
    assert_eq!(bus.read(Register::EventA) & EventBit::Timer.mask(), 0);
    bus.bench.pass(1_000_000);
    assert_ne!(bus.read(Register::EventA) & EventBit::Timer.mask(), 0);
}

#[test]
fn leds_are_pins_and_leave_their_neighbours_alone() {
    let mut bus = ModelBus::new();
    bus.bench
        .bar_write(Register::MiscLocalControl.offset(), 0x0000_0200);
    let mut led = Led::new(&mut bus, Which::Second);
    led.set_high().expect("cannot fail");
    assert!(led.is_set_high().expect("cannot fail"));
    assert_eq!(bus.read(Register::MiscLocalControl) & 0x260, 0x240);
    let mut led = Led::new(&mut bus, Which::Second);
    led.set_low().expect("cannot fail");
    assert!(led.is_set_low().expect("cannot fail"));
    assert_eq!(bus.read(Register::MiscLocalControl) & 0x260, 0x200);
}

fn transfer(note: u32) -> Transfer {
    let state = DmaState::new()
        .with_start(true)
        .with_no_swap(true)
        .into_bits();
    let host = HostAddress { high: 1, low: 0 }.plus(note * 8);
    Transfer {
        host,
        local: 0x2000 + note * 8,
        length: 8,
        state,
        note,
    }
}

/// Reference 6.3: strict order, the event by the "passed" rule, a distance from full.
#[test]
fn transfers_are_taken_back_in_order_three_times_round() {
    assert_eq!(HOST_BASE, 1 << 32);
    let mut bus = ModelBus::new();
    let mut ring = DescriptorRing::new(Resources::of_chip().read);
    ring.place(K + block::DMA_READ_RING);
    ring.reset(&mut bus);
    let mut next = 0;
    while next < 200 {
        bus.works = false;
        let first = next;
        while ring.has_room(1) {
            ring.push(&mut bus, &transfer(next)).expect("room");
            next += 1;
        }
        assert_eq!(ring.push(&mut bus, &transfer(999)), Err(Full));
        assert_eq!(next - first, 61, "64 less one, and 64 bytes' distance");
        assert!(!ring.is_idle(&mut bus));
        bus.works = true;
        assert_ne!(
            bus.read(Register::EventA) & EventBit::DmaReadComplete.mask(),
            0
        );
        let mut walk = ring.finished(&mut bus);
        assert_eq!(walk.len(), next - first);
        for note in first..next {
            let done = ring.take(&mut walk).expect("done");
            assert_eq!((done.note, ring.note(done.descriptor)), (note, note));
            assert_eq!(done.local(&mut bus), 0x2000 + note * 8);
        }
        assert!(walk.is_empty() && ring.take(&mut walk).is_none());
        ring.acknowledge(&mut bus, walk);
        assert_eq!(
            bus.read(Register::EventA) & EventBit::DmaReadComplete.mask(),
            0
        );
        assert!(ring.is_idle(&mut bus));
    }
}

/// Reference 6.5: the sum runs over the fragments of a frame, odd ones included, and past
/// transfers in between that are not summed; bit 11 stores it in the descriptor (C!).
#[test]
fn the_sum_of_a_frame_comes_back_with_its_last_fragment() {
    let mut bus = ModelBus::new();
    let mut ring = DescriptorRing::new(Resources::of_chip().read);
    ring.place(K + block::DMA_READ_RING);
    ring.reset(&mut bus);
    let data: Vec<u8> = (0..100u32).map(|n| (n * 91 + 5) as u8).collect();
    bus.bench.host.bytes[..100].copy_from_slice(&data);
    let summed = DmaState::new().with_start(true).with_checksum(true);
    // Twice, so that the sum of the first frame is not in that of the second.
    for start in [TX_BASE, TX_BASE + 0x1001] {
        let mut at = 0;
        for length in [33, 1, 46, 20] {
            let last = at + length == 100;
            if last {
                ring.push(&mut bus, &transfer(7)).expect("room");
                ring.store_sum(&mut bus);
            }
            let state = summed
                .with_restart_checksum(at == 0)
                .with_store_checksum(last);
            let fragment = Transfer {
                host: HostAddress { high: 1, low: at },
                local: start + at,
                length,
                state: state.into_bits(),
                note: u32::from(last),
            };
            ring.push(&mut bus, &fragment).expect("room");
            at += length;
        }
        bus.tick();
        let mut walk = ring.finished(&mut bus);
        let expected = tigon2_model::dma::add_bytes(0, start, &data);
        let mut sums = Vec::new();
        while let Some(done) = ring.take(&mut walk) {
            if done.note == 1 {
                sums.push(done.sum(&mut bus));
            }
        }
        ring.acknowledge(&mut bus, walk);
        assert_eq!(sums, [expected]);
    }
}

#[test]
fn host_addresses_carry_into_the_high_word() {
    let address = HostAddress {
        high: 1,
        low: 0xFFFF_FFF0,
    };
    assert_eq!(address.plus(0x20), HostAddress { high: 2, low: 0x10 });
    assert!(HostAddress::default().is_null() && !address.is_null());
}

/// Reference 10.2: frames go out in order; the ring and the buffer go round.
#[test]
fn frames_are_sent_round_the_rings() {
    let mut bus = ModelBus::new();
    let mut ring = TransmitRing::new(Resources::of_chip().transmitter);
    ring.place(K + block::MAC_TX_RING);
    ring.reset(&mut bus);
    let mut buffer = TransmitBuffer::new(TX_BASE, RX_BASE);
    for number in 0..700u32 {
        let mut frames = ring.open();
        assert!(frames.free(&mut bus, 1) != 0 && buffer.has_room(&mut bus, 1000));
        let start = buffer.position();
        for offset in (0..1000).step_by(4) {
            let mut address = start + offset;
            if address >= RX_BASE {
                address -= RX_BASE - TX_BASE;
            }
            bus.store(address, number);
        }
        buffer.take(1000);
        let end = buffer.position();
        bus.write(Register::TxProducer, end);
        frames.push(&mut bus, start, 1000, None);
        frames.close(&mut bus);
        buffer.take_last(0);
        bus.tick();
        let frames = bus.bench.sent();
        assert_eq!(frames.len(), 1, "{number}");
        assert_eq!(frames[0].len(), 1000);
        let word = number.to_be_bytes();
        assert!(
            frames[0].chunks_exact(4).all(|bytes| bytes == word),
            "{number}"
        );
    }
}

/// Reference 13: with checksums a descriptor is the MAC's only once the data was patched.
/// Reference 10.2: bit 30 and bits 31:16 of the words insert a tag (C).
#[test]
fn a_held_frame_waits_for_its_release() {
    let mut bus = ModelBus::new();
    let mut ring = TransmitRing::new(Resources::of_chip().transmitter);
    ring.place(K + block::MAC_TX_RING);
    ring.reset(&mut bus);
    let mut buffer = TransmitBuffer::new(TX_BASE, RX_BASE);
    for number in 0..400u32 {
        let mut starts = Vec::new();
        for _ in 0..2 {
            let mut frames = ring.open();
            assert!(frames.free(&mut bus, 1) != 0 && buffer.has_room(&mut bus, 1000));
            buffer.keep_together(128);
            let start = buffer.position();
            assert!(start + 128 <= RX_BASE);
            for offset in (0..64).step_by(4) {
                bus.store(start + offset, number);
            }
            buffer.take(64);
            bus.write(Register::TxProducer, buffer.position());
            frames.hold(&mut bus, start, 64, (starts.len() == 1).then_some(number));
            assert_ne!(frames.held(), 0);
            frames.close(&mut bus);
            buffer.take_last(0);
            starts.push(start);
        }
        bus.tick();
        assert!(bus.bench.sent().is_empty(), "{number}");
        for start in starts {
            assert_eq!(ring.oldest_held(&mut bus), (start, 64));
            bus.store(start + 60, 0xFEED);
            ring.release(&mut bus);
            bus.tick();
        }
        assert_eq!(ring.open().held(), 0);
        let frames = bus.bench.sent();
        assert_eq!(frames.len(), 2, "{number}");
        assert!(frames.iter().all(|frame| frame.ends_with(&[0xFE, 0xED])));
        let tag = [0x81, 0, (number >> 8) as u8, number as u8];
        assert_eq!((frames[0].len(), &frames[1][12..16]), (64, &tag[..]));
    }
}

#[test]
fn an_abandoned_frame_gives_its_room_back() {
    let mut bus = ModelBus::new();
    let mut buffer = TransmitBuffer::new(TX_BASE, TX_BASE + 4096);
    let start = buffer.position();
    buffer.take(3000);
    assert!(!buffer.has_room(&mut bus, 2000));
    buffer.rewind(start);
    assert!(buffer.has_room(&mut bus, 2000));
    buffer.take(4095);
    buffer.take_last(0);
    assert_eq!(buffer.position(), TX_BASE, "round the end");
}

/// Reference 10.3: a descriptor a frame, length with CRC.
#[test]
fn frames_are_taken_round_the_ring() {
    let mut bus = ModelBus::new();
    let mut ring = ReceiveRing::new(Resources::of_chip().receiver);
    ring.place(K + block::MAC_RX_RING);
    ring.reset(&mut bus);
    for number in 0..1200usize {
        assert_eq!(ring.oldest(&mut bus), None);
        assert!(!ring.has_more(&mut bus));
        let mut frame = [STATION.as_slice(), &[2, 0, 0, 0, 0, 1, 0x88, 0xB5]].concat();
        frame.resize(60 + number % 1000, number as u8);
        bus.bench.receive(&frame);
        assert!(ring.has_more(&mut bus));
        let received = ring.oldest(&mut bus).expect("a frame");
        assert_eq!(received.length as usize, frame.len() + 4);
        assert_eq!(received.errors, 0);
        assert_eq!(received.start % 8, 0);
        ring.release();
        ring.give_back(&mut bus);
        let end = received.start + received.length;
        bus.write(Register::RxConsumer, end);
    }
}
