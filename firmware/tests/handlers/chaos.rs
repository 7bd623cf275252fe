//! Tests a host that writes random values: the firmware neither hangs nor panics, and it writes
//! only to memory that the host has given it.

use crate::machine::{GUARD, MAC, Machine, PEER, Setup, frame};
use host_interface::bd::{BdFlags, ReceiveBd, SendBd};
use host_interface::gencom::Gencom;
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::testing::HOST_BASE;

/// A small generator, so that a failure is named by its seed.
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        // xorshift32
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(limit)) >> 32) as u32
    }

    /// Mostly a small number, sometimes any.
    fn index(&mut self) -> u32 {
        match self.below(8) {
            0 => self.next(),
            1 => self.below(2048),
            _ => self.below(128),
        }
    }
}

fn one_step(machine: &mut Machine, random: &mut Random) {
    match random.below(12) {
        0 => {
            let index = random.index();
            machine.ring(Mailbox::SendProducer, index);
        }
        1 => {
            let index = random.index();
            machine.ring(Mailbox::StandardProducer, index);
        }
        2 => {
            let word = random.below(20) << 24 | random.next() & 0x00FF_FFFF;
            machine.command(&[word, random.next(), random.next()]);
        }
        3 => {
            let index = random.index();
            machine.ring(Mailbox::CommandProducer, index);
        }
        4 | 5 => {
            let mapped = HOST_BASE + u64::from(0x3_0000 + random.below(0x4_0000));
            let wild = if random.below(8) == 0 { 1 << 40 } else { 0 };
            let address = mapped | wild;
            let flags = BdFlags::from_bits(random.next() as u16);
            let length = random.below(4000) as u16;
            machine.put_send_bd(SendBd::new(address, length, flags, random.next() as u16));
        }
        6 => {
            let mapped = HOST_BASE + u64::from(0x8_0000 + random.below(0x1_0000));
            let wild = if random.below(8) == 0 { 1 << 40 } else { 0 };
            let address = mapped | wild;
            let length = random.below(2000) as u16;
            let flags = BdFlags::from_bits(random.next() as u16);
            machine.put_receive_bd(ReceiveBd::new(address, length, flags, 1, 2));
        }
        7 => machine.give_buffers(4),
        8 => {
            let length = 14 + random.below(2000) as usize;
            let seed = random.next();
            let destination = [MAC, [0xFF; 6], [1, 2, 3, 4, 5, 6]][random.below(3) as usize];
            machine.arrive(&frame(destination, PEER, length, seed));
        }
        9 => {
            let words = [
                Gencom::ReceiveReturnConsumer,
                Gencom::EventConsumer,
                Gencom::CommandConsumer,
                Gencom::TransmitTicks,
                Gencom::TransmitMaxBds,
                Gencom::ReceiveTicks,
                Gencom::ReceiveMaxBds,
                Gencom::InterfaceMtu,
                Gencom::MaskInterrupts,
                Gencom::GigabitLink,
            ];
            let word = words[random.below(words.len() as u32) as usize];
            let value = random.index();
            machine.set_bar(word.bar_offset(), value);
        }
        10 => machine.ring(Mailbox::HostInterrupt, random.below(2)),
        _ => {
            let plugged = random.below(4) != 0;
            machine
                .bench()
                .with(|card, env| card.set_cable(env, plugged));
            machine.pass(u64::from(random.below(30_000)));
        }
    }
    machine.settle();
}

#[test]
fn a_mad_host_neither_hangs_nor_panics_the_firmware() {
    for seed in 1..=30u32 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9));
        let mut setup = Setup::default();
        if seed % 2 == 0 {
            // All that the send BDs could ask for.
            setup.information.send.max_len_and_flags |= 0x00BB;
        }
        let mut machine = Machine::up(&setup);
        for step in 0..400 {
            one_step(&mut machine, &mut random);
            assert!(!machine.is_stopped(), "seed {seed}, step {step}");
        }
        machine.pass(5_000);
        assert!(
            machine.guard_is_untouched(),
            "seed {seed}: a write to {GUARD:?}"
        );
    }
}
