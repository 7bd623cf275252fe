//! Tests a driver that makes every kind of mistake: the card reports it, serves the other
//! direction, and works again after a reset.

use host_driver::nic::NicStatistics;
use host_driver::{Config, Nic, NicError, Transport};
use host_interface::bar;
use integration_tests::spy::{END, SEND_RING, STANDARD_RING, Shared, Spy};
use integration_tests::stage::{give_up, in_time};
use integration_tests::{Engine, frames, stage, stories};
use std::io::IoSlice;
use std::time::{Duration, Instant};
use tigon2_chip::Cpu;
use tigon2_chip::registers::Register;

stories!(
    nonsense_in_every_register,
    control_blocks_and_pointers_outside_of_memory,
    a_send_ring_outside_of_memory,
    a_standard_ring_outside_of_memory,
    producers_out_of_range,
    send_descriptors_of_length_zero,
    send_descriptors_of_the_greatest_length,
    an_end_that_never_comes,
    receive_buffers_of_no_length_and_of_too_much,
);

const LINK: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a story looks on before it says that nothing more will happen.
const WHILE: Duration = Duration::from_millis(200);

/// An address at which no host has memory.
const NOWHERE: [u32; 2] = [0x0000_DEAD, 0xBEEF_0000];
/// Entries of the send ring.
const SEND_ENTRIES: u32 = 512;

/// A card that is up, with a view into the memory that it shares with the driver.
struct Host<E: Engine> {
    engine: E,
    nic: Nic<Spy<E::Transport>>,
    shared: Shared,
    number: u32,
}

impl<E: Engine> Host<E> {
    fn probed() -> Self {
        let (engine, transport) = E::start();
        let (spy, shared) = Spy::on(transport);
        let config = Config {
            firmware_timeout: Duration::from_secs(3),
            ..Config::default()
        };
        Host {
            engine,
            nic: Nic::probe(spy, config).expect("a card"),
            shared,
            number: 0,
        }
    }

    fn open() -> Self {
        let mut host = Self::probed();
        host.bring_up().expect("a good card");
        host
    }

    fn bring_up(&mut self) -> Result<(), NicError> {
        self.nic.load(&stage::firmware())?;
        self.nic.open()?;
        self.nic.wait_link(LINK).map(drop)
    }

    fn number(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    /// A frame of the host's leaves.
    fn sends(&mut self) {
        let frame = frames::numbered(frames::PEER, self.nic.station(), self.number());
        assert!(
            self.nic
                .queue(&[IoSlice::new(&frame)])
                .expect("a good frame")
        );
        self.nic.submit().expect("the card is there");
        let end = Instant::now() + PATIENCE;
        // What a story's descriptors made the card send comes before it.
        loop {
            match self.engine.receive() {
                Some(left) if left == frame => return,
                Some(_) => in_time(end, &mut self.nic, "the frame did not leave"),
                None => give_up(&mut self.nic, "no frame on the wire"),
            }
        }
    }

    /// A frame of the wire's arrives.
    fn receives(&mut self) {
        let frame = frames::numbered(self.nic.station(), frames::PEER, self.number());
        self.engine.send(&frame);
        let end = Instant::now() + PATIENCE;
        while !self.take().contains(&frame) {
            in_time(end, &mut self.nic, "the frame did not arrive");
        }
    }

    /// The other direction goes on, and nothing of what was asked for left the card.
    fn receives_and_sends_nothing(&mut self) {
        for _ in 0..50 {
            self.receives();
        }
        assert_eq!(
            self.engine.receive_now(),
            None,
            "nothing of it left the card"
        );
    }

    /// Lets the card work, and takes what it has received.
    fn take(&mut self) -> Vec<Vec<u8>> {
        self.nic
            .wait(Duration::from_millis(5))
            .expect("the card is there");
        self.nic.receive_batch(64).expect("no nonsense")
    }

    /// Looks until the driver's counts are as wanted.
    fn until(&mut self, what: &str, wanted: impl Fn(&NicStatistics) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            self.nic
                .wait(Duration::from_millis(20))
                .expect("the card is there");
            self.nic.service().expect("the card is well");
            match self.nic.statistics() {
                Ok(statistics) if wanted(&statistics) => return,
                // An error event for what the story did comes before the answer.
                Ok(_) | Err(NicError::FirmwareRefused { .. }) => {}
                Err(error) => panic!("{what}: {error}"),
            }
            in_time(end, &mut self.nic, &format!("{what}: not reported"));
        }
    }

    /// After a reset the card is as good as new.
    fn is_well_after_a_reset(&mut self, what: &str) {
        let mut again = || {
            self.nic.recover()?;
            self.nic.wait_link(LINK)
        };
        again().unwrap_or_else(|error| panic!("{what}: no way back: {error}"));
        while self.engine.receive_now().is_some() {}
        self.sends();
        self.receives();
    }

    /// Rings the send doorbell.
    fn ring(&mut self, producer: u32) {
        let transport = self.nic.transport();
        transport
            .write(bar::MAILBOX_SEND_PRODUCER, producer)
            .and_then(|()| transport.flush())
            .expect("the card is there");
    }
}

fn dropped(statistics: &NicStatistics, reason: &str) -> u64 {
    let dropped = statistics.firmware_drops.get(reason);
    dropped.expect("a reason of our firmware's")
}

/// Every word of the BAR, written with patterns that set, clear and mix all bits.
/// It may stop the card: no host program may, and a reset mends all of it.
fn nonsense_in_every_register<E: Engine>() {
    let mut host = Host::<E>::open();
    let patterns: [fn(u32) -> u32; 4] = [
        |_| 0xFFFF_FFFF,
        |_| 0,
        |offset| offset.wrapping_mul(0x9E37_79B9),
        |_| 0x8000_0001,
    ];
    for (number, pattern) in patterns.into_iter().enumerate() {
        for offset in (0..bar::BYTES).step_by(4) {
            let transport = host.nic.transport();
            transport
                .write(offset, pattern(offset))
                .expect("the way to the card holds");
            transport.read(offset).expect("the way to the card holds");
        }
        host.engine.pass(Duration::from_millis(20));
        // Whatever the driver finds now is an error or nothing, never a panic.
        let _ = host.nic.service();
        let _ = host.nic.receive_batch(64);
        host.is_well_after_a_reset(&format!("pattern {number}"));
    }
    // One register at a time, while the card works: it is reset from any state.
    for register in [
        Register::MacTxState,
        Register::MacRxState,
        Register::AssistState,
        Register::cpu_pc(Cpu::A),
        Register::RxProducer,
        Register::TxDescriptorProducer,
    ] {
        let transport = host.nic.transport();
        transport
            .write(register.offset(), 0x5A5A_5A5A)
            .expect("the way to the card holds");
        host.engine
            .send(&frames::numbered([0xFF; 6], frames::PEER, 1));
        host.engine.pass(Duration::from_millis(5));
        host.is_well_after_a_reset(&format!("{register:?}"));
    }
}

/// Reference 12: the information block's control blocks and pointers. Each in turn
/// names memory that is not there.
fn control_blocks_and_pointers_outside_of_memory<E: Engine>() {
    let mut host = Host::<E>::open();
    let places = [
        ("event ring", 0x400),
        ("send ring", SEND_RING),
        ("standard ring", STANDARD_RING),
        ("return ring", 0x460),
        ("event producer", 0x470),
        ("return producer", 0x478),
        ("send consumer", 0x480),
    ];
    for (what, offset) in places {
        host.shared
            .before_start(move |shared, info| shared.write(info + offset, &NOWHERE));
        // It comes up or says why not; what it cannot do is go on without a word.
        if let Err(error) = host.bring_up() {
            assert!(!error.to_string().contains('\n'), "{what}: {error}");
        } else {
            let frame = frames::numbered(frames::PEER, host.nic.station(), 1);
            let _ = host.nic.queue(&[IoSlice::new(&frame)]);
            let _ = host.nic.submit();
            host.engine
                .send(&frames::numbered(host.nic.station(), frames::PEER, 1));
            let end = Instant::now() + WHILE;
            while Instant::now() < end {
                let _ = host.nic.wait(Duration::from_millis(5));
                let _ = host.nic.service();
                let _ = host.nic.receive_batch(64);
            }
        }
        host.bring_up()
            .unwrap_or_else(|error| panic!("{what}: no way back: {error}"));
        while host.engine.receive_now().is_some() {}
        host.sends();
        host.receives();
    }
}

/// The card says so, and goes on receiving.
fn a_send_ring_outside_of_memory<E: Engine>() {
    let mut host = Host::<E>::probed();
    host.shared
        .before_start(|shared, info| shared.write(info + SEND_RING, &NOWHERE));
    host.bring_up().expect("nobody has looked at the ring yet");
    let frame = frames::numbered(frames::PEER, host.nic.station(), 1);
    assert!(
        host.nic
            .queue(&[IoSlice::new(&frame)])
            .expect("a good frame")
    );
    host.nic.submit().expect("the card is there");
    host.until("the ring", |statistics| statistics.firmware_errors >= 1);
    for _ in 0..50 {
        host.receives();
    }
    host.is_well_after_a_reset("a send ring outside of memory");
}

/// The card says so at once.
fn a_standard_ring_outside_of_memory<E: Engine>() {
    let mut host = Host::<E>::probed();
    host.shared
        .before_start(|shared, info| shared.write(info + STANDARD_RING, &NOWHERE));
    // The card fetches descriptors as soon as it has some: the driver hears of it while
    // it opens, or while it waits for the link.
    match host.bring_up() {
        Err(NicError::FirmwareRefused { reason, .. }) => assert_eq!(reason, "bad configuration"),
        Err(error) => panic!("another reason: {error}"),
        Ok(()) => host.until("the ring", |statistics| statistics.firmware_errors >= 1),
    }
    // Frames find no buffer; the card is none the worse for it.
    for number in 1..50 {
        let frame = frames::numbered(host.nic.station(), frames::PEER, number);
        host.engine.send(&frame);
    }
    host.engine.pass(Duration::from_millis(50));
    host.nic.check_fatal().expect("the firmware is alive");
    host.bring_up().expect("a good ring");
    while host.engine.receive_now().is_some() {}
    host.sends();
    host.receives();
}

fn producers_out_of_range<E: Engine>() {
    let mut host = Host::<E>::open();
    let mailboxes = [
        ("send", bar::MAILBOX_SEND_PRODUCER),
        ("standard", bar::MAILBOX_STANDARD_PRODUCER),
        ("jumbo", bar::MAILBOX_JUMBO_PRODUCER),
        ("mini", bar::MAILBOX_MINI_PRODUCER),
        ("command", bar::MAILBOX_COMMAND_PRODUCER),
    ];
    for (what, mailbox) in mailboxes {
        for producer in [0xFFFF_FFFF, 0x1_0000, 2048] {
            let errors = host.nic.firmware_errors();
            let transport = host.nic.transport();
            let before = transport.read(mailbox).expect("the card is there");
            transport
                .write(mailbox, producer)
                .and_then(|()| transport.flush())
                .expect("the card is there");
            // Rings that are not in use have no producer that could be wrong, and of
            // the command ring's the firmware takes what counts round it.
            if matches!(what, "send" | "standard") {
                let name = format!("{what} {producer:#x}");
                host.until(&name, |statistics| statistics.firmware_errors > errors);
            }
            let transport = host.nic.transport();
            transport.write(mailbox, before).expect("the card is there");
            host.sends();
            host.receives();
        }
    }
    host.is_well_after_a_reset("producers out of range");
}

/// A ring full of empty descriptors, some with END and some without.
fn send_descriptors_of_length_zero<E: Engine>() {
    let mut host = Host::<E>::open();
    for index in 0..100 {
        let flags = if index % 3 == 2 { END } else { 0 };
        let transport = host.nic.transport();
        host.shared
            .write_send_bd(transport, index, [0, 0x1000, flags, 0]);
    }
    host.ring(99);
    host.until("no length", |statistics| {
        dropped(statistics, "BadSendBd") == 33
    });
    host.receives_and_sends_nothing();
    host.is_well_after_a_reset("descriptors of length 0");
}

/// A length that no memory of the host's and no buffer of the card's holds.
fn send_descriptors_of_the_greatest_length<E: Engine>() {
    let mut host = Host::<E>::open();
    let station = host.nic.station();
    let memory = host.nic.transport().allocate(0x1_0000).expect("64 KB");
    memory
        .write_bytes(0, &frames::numbered(frames::PEER, station, 9))
        .expect("inside");
    let (high, low) = ((memory.iova() >> 32) as u32, memory.iova() as u32);
    for index in 0..10 {
        let transport = host.nic.transport();
        let words = [high, low, 0xFFFF << 16 | END, 0];
        host.shared.write_send_bd(transport, index, words);
    }
    host.ring(10);
    host.until("65535 bytes", |statistics| {
        dropped(statistics, "SendTooLong") == 10
    });
    host.receives_and_sends_nothing();
    host.is_well_after_a_reset("descriptors of 65535 bytes");
}

/// The ring goes round twice without an END.
fn an_end_that_never_comes<E: Engine>() {
    let mut host = Host::<E>::open();
    let memory = host.nic.transport().allocate(0x1000).expect("4 KB");
    let (high, low) = ((memory.iova() >> 32) as u32, memory.iova() as u32);
    for index in 0..SEND_ENTRIES {
        let transport = host.nic.transport();
        host.shared
            .write_send_bd(transport, index, [high, low, 100 << 16, 0]);
    }
    let mut producer = 0;
    for _ in 0..8 {
        producer = (producer + SEND_ENTRIES / 4) % SEND_ENTRIES;
        host.ring(producer);
        host.engine.pass(Duration::from_millis(20));
        host.receives();
    }
    host.until("no end", |statistics| {
        dropped(statistics, "BadSendBd") + dropped(statistics, "SendTooLong") >= 1
    });
    assert_eq!(
        host.engine.receive_now(),
        None,
        "nothing of it left the card"
    );
    host.is_well_after_a_reset("no END");
}

/// Buffers of no bytes hold no frame. Those of 65535 are believed, as only the
/// driver can know: frames arrive in them.
fn receive_buffers_of_no_length_and_of_too_much<E: Engine>() {
    for length in [0, 0xFFFF] {
        let mut host = Host::<E>::probed();
        let count = u32::from(host.nic.config().receive_buffers).min(511);
        host.shared.before_buffers(move |shared, info| {
            shared.write_standard_lengths(info, count, length);
        });
        host.bring_up().expect("nobody has needed a buffer yet");
        if length == 0 {
            for number in 0..20 {
                let frame = frames::numbered(host.nic.station(), frames::PEER, number);
                host.engine.send(&frame);
            }
            host.until("no length", |statistics| {
                dropped(statistics, "BufferTooSmall") + dropped(statistics, "NoReceiveBd") >= 1
            });
        } else {
            host.receives();
        }
        for _ in 0..50 {
            host.sends();
            host.nic.service().expect("the card is well");
        }
        host.is_well_after_a_reset("receive buffers of odd lengths");
    }
}
