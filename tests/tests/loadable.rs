//! Tests a handler that is loaded into the running card, without a change of the firmware's files.

use host_driver::Config;
use host_interface::extension::Extension;
use host_interface::loadable::{Header, RowWord, row_word};
use integration_tests::{Sim, Stage};
use testbed::firmware::{FirmwareOptions, Placement, Variant, build, build_with_room};
use tigon2_chip::Register;
use tigon2_chip::mailbox::{BAR_BASE, BYTES};
use tigon2_sim::asm::{A0, RA, T0, V0, ZERO, addiu, bne, immediate, jr, lw, sw};
use tigon2_sim::transport::SharedMachine;

/// Bytes that the firmware is built with: more than there is in front of K, so that K moves.
const ROOM: u32 = 0x8000;
/// Turns of the handler's waiting loop: two instructions each.
const TURNS: i32 = 2000;
/// BAR offset of the window to NIC memory.
const WINDOW: u32 = 0x800;

/// Counts in the word at its argument and waits; runs three times for one ring.
fn routine() -> Vec<u32> {
    const SLTI: u32 = 0x0A;
    vec![
        lw(V0, 0, A0),
        addiu(V0, V0, 1),
        sw(V0, 0, A0),
        addiu(T0, ZERO, TURNS),
        bne(T0, ZERO, -1),
        addiu(T0, T0, -1),
        jr(RA),
        immediate(SLTI, V0, V0, 3),
    ]
}

/// The host's view of NIC memory, through the window.
struct Window(SharedMachine);

impl Window {
    fn at(&self, address: u32) -> u32 {
        let base = address & !0x7FF;
        let mut machine = self.0.lock();
        machine.bar_write(Register::WindowBase.offset(), base);
        WINDOW + (address - base)
    }

    fn read(&self, address: u32) -> u32 {
        let offset = self.at(address);
        self.0.lock().bar_read(offset)
    }

    fn write(&self, address: u32, value: u32) {
        let offset = self.at(address);
        self.0.lock().bar_write(offset, value);
    }

    fn ring(&self, mailbox: u32) {
        let mut machine = self.0.lock();
        machine.bar_write(BAR_BASE + BYTES * mailbox + 4, 1);
        machine.run(200_000);
    }
}

fn stage(variant: Variant, has_room: bool) -> Stage<Sim> {
    let options = FirmwareOptions {
        variant,
        placement: Placement::Scratch,
        quiet: true,
    };
    let built = if has_room {
        build_with_room(options, ROOM)
    } else {
        build(options)
    };
    let image = built.expect("the firmware builds").tg2;
    let mut stage = Stage::<Sim>::probed(Config::default());
    let image = std::fs::read(image).expect("the image");
    stage.nic.load(&image).expect("it starts");
    stage.nic.open().expect("it opens");
    stage
        .nic
        .wait_link(std::time::Duration::from_secs(5))
        .expect("a link");
    stage
}

fn a_handler_is_loaded(variant: Variant) {
    let mut stage = stage(variant, true);
    let card = Window(stage.engine.machine().clone());
    let block = card.read(Extension::Loadable.nic_address());
    assert_ne!(block, 0, "it was built with room");
    let bytes = card.read(block + Header::RoomBytes as u32);
    let buffers = card.read(Extension::TransmitBuffer.nic_address());
    assert!(bytes > 0x7F00 && block + ROOM <= buffers & 0xF_FFFF);
    let room = card.read(block + Header::Room as u32);
    let code = routine();
    let counter = room + 4 * code.len() as u32;
    for (address, word) in (room..).step_by(4).zip(code) {
        card.write(address, word);
    }
    card.write(counter, 0);
    let row = |word| block + row_word(0, word);
    card.write(row(RowWord::Argument), counter);
    card.write(row(RowWord::Entry), room);
    assert_eq!(card.read(row(RowWord::Runs)), 0);

    let mailbox = card.read(block + Header::Mailbox as u32);
    for (rings, runs) in [(1, 3), (2, 4), (3, 5)] {
        card.ring(mailbox);
        assert_eq!(card.read(counter), runs, "after {rings}");
        assert_eq!(card.read(row(RowWord::Runs)), runs);
        // 4000 instructions of 11.4 ns, and what the fetches from SRAM take.
        let each = card.read(row(RowWord::Microseconds)) / runs;
        assert!((45..200).contains(&each), "{each} us a run");
    }
    card.write(row(RowWord::Entry), 0);
    card.ring(mailbox);
    assert_eq!(card.read(counter), 5, "it was taken out");

    // Frames pass as ever.
    let frame = stage.inbound(1);
    echo(&mut stage, &frame);
}

fn echo(stage: &mut Stage<Sim>, frame: &[u8]) {
    use integration_tests::Engine;
    stage.engine.send(frame);
    assert_eq!(stage.receive(1), [frame]);
    let answer = stage.outbound(2);
    stage.transmit(&[&answer]);
    assert_eq!(stage.engine.receive().as_deref(), Some(answer.as_slice()));
}

#[test]
fn a_handler_is_loaded_into_the_parallel_firmware() {
    a_handler_is_loaded(Variant::Parallel);
}

#[test]
fn a_handler_is_loaded_into_the_uniprocessor_firmware() {
    a_handler_is_loaded(Variant::Uniprocessor);
}

/// What is built without room has none of it: a ring of the mailbox is nothing to it.
#[test]
fn without_room_there_is_nothing() {
    let mut stage = stage(Variant::Parallel, false);
    let card = Window(stage.engine.machine().clone());
    assert_eq!(card.read(Extension::Loadable.nic_address()), 0);
    for mailbox in 30..32 {
        card.ring(mailbox);
    }
    let frame = stage.inbound(1);
    echo(&mut stage, &frame);
}
