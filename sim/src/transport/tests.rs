//! Tests the simulated card through its transport.

use super::*;
use crate::asm::*;
use crate::stalls::Stalls;
use host_interface::bar;
use host_interface::image::{Image, Version};
use tigon2_chip::{Cpu, Register};
use tigon2_model::CpuFault;

/// Adds one to each send producer that the host writes, puts the sum into a host word
/// by a direct DMA write (reference 6.1), and interrupts.
fn program() -> Vec<u32> {
    let register = |register: Register| register.offset() as i32;
    vec![
        lui(T1, 0xC000),
        get(V0, Register::EventA),
        lui(A1, 0x0040),
        special(0x24, V0, V0, A1, 0),
        beq(V0, ZERO, -4),
        NOP,
        get(V1, Register::MailboxEventA),
        sw(V1, register(Register::MailboxEventA), T1),
        immediate(0x0C, V1, V1, 4),
        beq(V1, ZERO, -9),
        NOP,
        // The word at 0x2F0 = send producer + 1.
        lw(V0, 0x114, ZERO),
        addiu(V0, V0, 1),
        sw(V0, 0x2F0, ZERO),
        // Host address from gencom's 0x208/0x20C, as the information block's.
        lw(V0, 0x208, ZERO),
        sw(V0, register(Register::DmaWriteHostHigh), T1),
        lw(V0, 0x20C, ZERO),
        sw(V0, register(Register::DmaWriteHostLow), T1),
        addiu(V0, ZERO, 0x2F0),
        sw(V0, register(Register::DmaWriteLocal), T1),
        addiu(V0, ZERO, 4),
        sw(V0, register(Register::DmaWriteLength), T1),
        addiu(V0, ZERO, 6),
        sw(V0, register(Register::DmaWriteState), T1),
        addiu(V0, ZERO, 4),
        sw(V0, register(Register::MiscLocalControl), T1),
        beq(ZERO, ZERO, -26),
        NOP,
    ]
}

fn get(rt: u32, register: Register) -> u32 {
    lw(rt, register.offset() as i32, T1)
}

/// Loads and starts the program as a driver does: halt, window, program counter, run.
fn started() -> Result<SimTransport, TransportError> {
    let mut card = SimTransport::power_on(Board::default());
    card.write(Register::MiscHostControl.offset(), 0x2200_0022)?;
    let code = bytes(&program());
    let version = Version {
        major: 1,
        minor: 0,
        fix: 0,
    };
    let image = Image::new(version, 0x4000, 0x4000, &code).expect("a good image");
    for (address, word) in image.words() {
        let (base, offset) = bar::window(address);
        card.write(Register::WindowBase.offset(), base)?;
        card.write(offset, word)?;
    }
    card.write(Register::CpuAPc.offset(), image.start())?;
    card.write(Register::CpuAState.offset(), 0)?;
    Ok(card)
}

/// The whole way round: mailbox, CPU, DMA into the driver's memory, interrupt.
#[test]
fn a_driver_and_a_program_talk_through_the_card() -> Result<(), TransportError> {
    let mut card = started()?;
    let memory = card.allocate(64)?;
    card.write(0x608, (memory.iova() >> 32) as u32)?;
    card.write(0x60C, memory.iova() as u32 + 8)?;
    for round in 1..=3 {
        card.write(bar::MAILBOX_SEND_PRODUCER, 100 * round)?;
        assert!(card.wait(Vector::INTERRUPT, Duration::from_millis(1))?);
        assert_eq!(memory.read_word(8)?, 100 * round + 1);
        // The line is still asserted, but the transport has masked it.
        assert!(!card.wait(Vector::INTERRUPT, Duration::from_micros(10))?);
        card.unmask(Vector::INTERRUPT)?;
        assert!(card.wait(Vector::INTERRUPT, Duration::from_micros(10))?);
        card.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
        card.unmask(Vector::INTERRUPT)?;
        assert!(!card.wait(Vector::INTERRUPT, Duration::from_micros(10))?);
    }
    assert_eq!(card.machine().lock().fault(Cpu::A), None);
    Ok(())
}

#[test]
fn time_passes_on_the_card_only_in_the_driver_s_calls() -> Result<(), TransportError> {
    let mut card = started()?;
    let timing = HostTiming {
        read_ns: 1000,
        write_ns: 125,
        interrupt_ns: 250,
    };
    card.set_timing(timing);
    let cycle = |card: &SimTransport| card.machine().lock().cycle();
    let start = cycle(&card);
    card.read(Register::Timer.offset())?;
    assert_eq!(cycle(&card) - start, 88);
    card.write(Register::Timer.offset(), 0)?;
    assert_eq!(cycle(&card) - start, 88 + 11);
    assert!(
        !card.wait(Vector::INTERRUPT, Duration::from_secs(3))?,
        "nothing happens"
    );
    assert_eq!(cycle(&card) - start, 88 + 11 + 3 * 88_000_000);
    let machine = card.machine();
    let strobe = Register::MiscLocalControl;
    machine.lock().register_write(Cpu::A, strobe, 4);
    let start = cycle(&card);
    assert!(card.wait(Vector::INTERRUPT, Duration::from_secs(1))?);
    assert_eq!(cycle(&card) - start, 22, "the driver hears of it later");
    Ok(())
}

/// Host/NIC software interface: BAR 0 is 16 KB of aligned words.
#[test]
fn offsets_that_no_bar_has_are_refused() {
    let mut card = SimTransport::power_on(Board::default());
    for offset in [2, 0x4000, 0xFFFF_FFFC, 0x41] {
        assert!(matches!(card.read(offset), Err(TransportError::BadOffset(bad)) if bad == offset));
        assert!(matches!(
            card.write(offset, 0),
            Err(TransportError::BadOffset(_))
        ));
    }
    assert!(card.read(0x3FFC).is_ok());
    assert!(matches!(
        card.config_read(0x100),
        Err(TransportError::BadOffset(0x100))
    ));
    assert_eq!(card.config_read(0).ok(), Some(0x0001_12AE), "an AceNIC");
}

/// A wait for a vector that the card does not have would never end.
#[test]
fn the_card_has_one_interrupt() {
    let mut card = SimTransport::power_on(Board::default());
    let other = Vector::new(3);
    assert!(matches!(
        card.wait(other, Duration::from_micros(1)),
        Err(TransportError::NoVector(vector)) if vector == other
    ));
    assert!(card.unmask(other).is_err());
    assert!(card.unmask(Vector::INTERRUPT).is_ok());
}

#[test]
fn memories_do_not_touch_and_lie_above_4_gb() -> Result<(), TransportError> {
    let mut card = SimTransport::power_on(Board::default());
    let (first, second) = (card.allocate(5000)?, card.allocate(1)?);
    assert_eq!((first.iova(), first.len()), (FIRST_IOVA, 8192));
    assert!(second.iova() > first.iova() + first.len() as u64);
    Ok(())
}

/// A card whose driver has gone can no longer write to that driver's memory.
#[test]
fn a_dropped_transport_takes_its_memory_along() -> Result<(), TransportError> {
    let mut card = started()?;
    let memory = card.allocate(64)?;
    card.write(0x608, (memory.iova() >> 32) as u32)?;
    card.write(0x60C, memory.iova() as u32)?;
    let machine = card.machine();
    drop(card);
    let mut machine = machine.lock();
    machine.bar_write(bar::MAILBOX_SEND_PRODUCER, 1);
    machine.run(1000);
    assert_eq!(machine.word(0x2F0), 2, "the program ran");
    assert_eq!(memory.read_word(0)?, 0);
    let state = machine.bar_read(Register::DmaWriteState.offset());
    assert_ne!(state & tigon2_chip::bits::DmaState::ERRORS, 0);
    Ok(())
}

/// A reset halts both CPUs; the driver can load and start again.
#[test]
fn a_reset_card_can_be_started_again() -> Result<(), TransportError> {
    let mut card = started()?;
    card.reset()?;
    assert_ne!(card.read(Register::CpuAState.offset())? & 0x1_0000, 0);
    assert!(!card.machine().lock().cpus().any_running());
    card.machine().lock().load_image(0x4000, &bytes(&[BREAK]));
    card.write(Register::CpuAPc.offset(), 0x4000)?;
    card.write(Register::CpuAState.offset(), 0)?;
    assert!(!card.wait(Vector::INTERRUPT, Duration::from_micros(1))?);
    let fault = card.machine().lock().fault(Cpu::A);
    assert_eq!(fault, Some((CpuFault::Break, 0x4000)));
    Ok(())
}

/// What a driver that gives up says of the card.
#[test]
fn what_explains_a_stall_is_counted() -> Result<(), TransportError> {
    let mut card = started()?;
    let memory = card.allocate(64)?;
    card.write(0x608, (memory.iova() >> 32) as u32)?;
    card.write(0x60C, memory.iova() as u32)?;
    let mut expected = Stalls::default();
    let soon = Duration::from_micros(100);
    let counted = |card: &SimTransport| card.machine().stalls();
    let look = Register::MiscHostControl.offset();

    // Reported, looked, and the pin is high; unmasked too early, so reported again.
    card.write(bar::MAILBOX_SEND_PRODUCER, 1)?;
    assert!(card.wait(Vector::INTERRUPT, soon)?);
    card.read(look)?;
    (expected.signals, expected.waiting) = (1, true);
    assert_eq!(counted(&card), expected);
    card.unmask(Vector::INTERRUPT)?;
    assert!(card.wait(Vector::INTERRUPT, soon)?);
    (expected.signals, expected.repeats) = (2, 1);
    assert_eq!(counted(&card), expected);

    // By now there is no interrupt: the second was for nothing.
    card.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
    card.read(look)?;
    (expected.spurious, expected.waiting) = (1, false);
    assert_eq!(counted(&card), expected);
    card.read(look)?;
    assert_eq!(counted(&card), expected, "nobody was told");

    // Lowered and unmasked in this order, an interrupt is told once.
    card.unmask(Vector::INTERRUPT)?;
    card.write(bar::MAILBOX_SEND_PRODUCER, 2)?;
    assert!(card.wait(Vector::INTERRUPT, soon)?);
    (expected.signals, expected.waiting) = (3, true);
    assert_eq!(counted(&card), expected);

    // No such register; and a frame that meets no link.
    card.read(0x3FC)?;
    card.machine().lock().send_frame(0, vec![0; 60]);
    assert!(!card.wait(Vector::INTERRUPT, soon)?);
    (expected.undefined, expected.dropped) = (1, 1);
    assert_eq!(counted(&card), expected);
    assert_eq!(card.counts()?, Some(expected.to_string()));
    Ok(())
}
