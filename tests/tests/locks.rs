//! Tests the locks of the state that both CPUs share: a CPU waits for the other one, and
//! continues.

use host_driver::Config;
use host_interface::command::{Command, CommandCode};
use host_interface::gencom::Gencom;
use host_interface::ring::COMMAND_ENTRIES;
use integration_tests::{Sim, Stage};
use object::{Object, ObjectSymbol};
use testbed::firmware::{FirmwareOptions, Placement, Variant, build};
use tigon2_chip::mailbox::Mailbox;
use tigon2_chip::memory::COMMAND_RING;
use tigon2_sim::Machine;

/// Cycles in which a command is done.
const LONG: u64 = 100_000;

/// The word with the lock of the trace, and its byte in it.
fn lock(elf: &[u8]) -> (u32, u32) {
    let file = object::File::parse(elf).expect("the ELF");
    let mut rings = file
        .symbols()
        .filter(|symbol| symbol.name().is_ok_and(|name| name.contains("5trace4RING")));
    let address = rings.next().expect("the trace's lock").address() as u32;
    assert!(rings.next().is_none(), "there is one");
    (address & !3, 0x0100_0000 >> (8 * (address & 3)))
}

/// The other CPU has the trace: a command that is traced waits, and goes on when it is let go.
#[test]
fn a_cpu_waits_for_the_trace_and_goes_on() {
    for variant in [Variant::Parallel, Variant::Uniprocessor] {
        let options = FirmwareOptions {
            variant,
            placement: Placement::Scratch,
            quiet: true,
        };
        let built = build(options).expect("the firmware builds");
        let image = std::fs::read(built.tg2).expect("the image");
        let elf = std::fs::read(built.elf).expect("the ELF");
        let (word, bit) = lock(&elf);

        let mut stage = Stage::<Sim>::probed(Config::default());
        stage.nic.load(&image).expect("it starts");
        stage.nic.open().expect("it opens");
        let machine = stage.engine.machine().clone();
        let mut machine = machine.lock();
        machine.bar_write(Gencom::TraceMask.bar_offset(), u32::MAX);
        machine.run(LONG);

        let before = machine.word(word);
        assert_eq!(before & bit, 0, "nobody has it");
        let pointer = machine.word(Gencom::TracePointer.nic_address());
        machine.set_word(word, before | bit);
        let next = queue_a_command(&mut machine);
        machine.run(LONG);
        let consumer = |machine: &Machine| machine.word(Gencom::CommandConsumer.nic_address());
        assert_ne!(consumer(&machine), next, "{variant:?} waits");
        assert_eq!(machine.word(Gencom::TracePointer.nic_address()), pointer);

        machine.set_word(word, before);
        machine.run(LONG);
        assert_eq!(consumer(&machine), next, "{variant:?} goes on");
        assert_ne!(machine.word(Gencom::TracePointer.nic_address()), pointer);
        assert_eq!(machine.word(word) & bit, 0, "and has let it go");
    }
}

/// Has the card refresh its station address, which needs no answer; the consumer index behind
/// the command.
fn queue_a_command(machine: &mut Machine) -> u32 {
    let at = machine.word(Gencom::CommandConsumer.nic_address());
    let command = Command::new(CommandCode::SetMacAddress, 0).pack();
    machine.set_word(COMMAND_RING + 4 * at, command);
    let next = (at + 1) % COMMAND_ENTRIES;
    machine.bar_write(Mailbox::CommandProducer.bar_offset(), next);
    next
}
