use super::*;
use crate::setup::{self, Options};
use crate::testing::{Call, Notes};
use tigon2_chip::registers::Register;

fn function(options: &Options) -> Function<Notes> {
    let board = tigon2_model::Board::default();
    let notes = Notes::new(&board);
    let (card, eeprom) = setup::card(board, options).expect("the options are good");
    let machine = Machine::new(notes, card, Client::default());
    machine.power_on();
    Function {
        machine: Arc::new(machine),
        eeprom: Arc::new(Mutex::new(eeprom)),
    }
}

fn word(function: &mut Function<Notes>, register: Register) -> u32 {
    let mut data = [0; 4];
    let offset = register.offset().into();
    let read = function.region_read(region::BAR0, offset, &mut data);
    assert_eq!(read, Ok(()));
    u32::from_le_bytes(data)
}

/// Reference 9: R[68] chooses what the window shows; several words in one message are
/// single words in ascending order.
#[test]
fn a_long_access_is_words_in_ascending_order() {
    let mut function = function(&Options::default());
    let swap = 0x2200_0022_u32.to_le_bytes();
    assert_eq!(function.region_write(region::BAR0, 0x40, &swap), Ok(()));
    let base = Register::WindowBase.offset().into();
    let window = 0x4000_u32.to_le_bytes();
    assert_eq!(function.region_write(region::BAR0, base, &window), Ok(()));
    let data: Vec<u8> = (1..=64).collect();
    assert_eq!(function.region_write(region::BAR0, 0x800, &data), Ok(()));
    let mut back = [0; 64];
    assert_eq!(function.region_read(region::BAR0, 0x800, &mut back), Ok(()));
    assert_eq!(back[..], data);
    // Words keep their value: in big-endian NIC memory the bytes are reversed.
    let mut nic = [0; 4];
    function.machine.host().sram_read(0x4000, &mut nic);
    assert_eq!(nic, [4, 3, 2, 1]);
}

#[test]
fn parts_of_words_are_refused() {
    let mut function = function(&Options::default());
    for (offset, length) in [(0x40, 2), (0x42, 4), (0x40, 6), (0x41, 1), (0x40, 0)] {
        let mut data = vec![0; length];
        let refused = Err(Errno::INVAL);
        assert_eq!(
            function.region_read(region::BAR0, offset, &mut data),
            refused
        );
        assert_eq!(function.region_write(region::BAR0, offset, &data), refused);
    }
    let other = function.region_read(region::CONFIG + 1, 0, &mut [0; 4]);
    assert_eq!(other, Err(Errno::INVAL));
}

/// A driver that gives up says what the emulator has counted.
#[test]
fn counts_are_text_that_ends_with_zeros() {
    let mut function = function(&Options::default());
    let mut text = [0xFF; COUNTS_BYTES as usize];
    assert_eq!(function.region_read(region::COUNTS, 0, &mut text), Ok(()));
    let text = String::from_utf8(text.to_vec()).expect("text");
    let counts = text.trim_end_matches('\0').to_owned();
    assert!(counts.len() < text.len(), "all of it fits");
    for name in ["lost", "refused", "spurious", "waiting", "lock_held_us"] {
        assert!(counts.contains(&format!("{name}=")), "{name} in {counts}");
    }
    let mut part = [0; 4];
    assert_eq!(function.region_read(region::COUNTS, 1, &mut part), Ok(()));
    assert_eq!(part, counts.as_bytes()[1..5]);
    let written = function.region_write(region::COUNTS, 0, &part);
    assert_eq!(written, Err(Errno::INVAL));
}

/// Reference 19: drivers read configuration space in all sizes.
#[test]
fn configuration_space_is_read_in_all_sizes() {
    let mut function = function(&Options::default());
    let mut vendor = [0; 2];
    assert_eq!(function.region_read(region::CONFIG, 0, &mut vendor), Ok(()));
    assert_eq!(u16::from_le_bytes(vendor), 0x12AE);
    let mut all = [0; 256];
    assert_eq!(function.region_read(region::CONFIG, 0, &mut all), Ok(()));
    assert_eq!(all[..2], vendor);
    assert_eq!(function.region_write(region::CONFIG, 0x0D, &[64]), Ok(()));
    let mut latency = [0];
    assert_eq!(
        function.region_read(region::CONFIG, 0x0D, &mut latency),
        Ok(())
    );
    assert_eq!(latency, [64]);
}

/// Reference 19, "What a vfio-user server learns": halt the CPUs when the client goes.
#[test]
fn a_client_that_goes_leaves_halted_cpus() {
    let mut function = function(&Options::default());
    let run = 0_u32.to_le_bytes();
    let state = Register::CpuAState.offset().into();
    assert_eq!(function.region_write(region::BAR0, state, &run), Ok(()));
    assert_eq!(word(&mut function, Register::CpuAState) & 0x1_0000, 0);
    function.machine.host().calls();
    function.disconnected(&Disconnect::Closed);
    let calls = function.machine.host().calls();
    assert_eq!(calls.last(), Some(&Call::Settle));
    assert!(calls.iter().any(|calls| matches!(calls, Call::Halt(_))));
    assert_ne!(word(&mut function, Register::CpuAState) & 0x1_0000, 0);
}

#[test]
fn a_client_that_goes_leaves_the_eeprom_in_its_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("eeprom.bin");
    let options = Options {
        eeprom: Some(path.clone()),
        mac: Some([2, 1, 2, 3, 4, 5]),
        ..Options::default()
    };
    function(&options).disconnected(&Disconnect::Closed);
    let kept = std::fs::read(&path).expect("it was written");
    assert_eq!(kept[0x8C..0x94], [0, 0, 2, 1, 2, 3, 4, 5]);
    // The next card has the address without a new setting.
    let options = Options {
        mac: None,
        ..options
    };
    assert_eq!(function(&options).machine.eeprom(), kept);
}

#[test]
fn a_dead_machine_answers_with_errors() {
    let mut function = function(&Options::default());
    function.machine.die();
    let read = function.region_read(region::BAR0, 0x40, &mut [0; 4]);
    assert_eq!(read, Err(Errno::IO));
    assert_eq!(function.reset(), Err(Errno::IO));
    function.batch_done();
    function.disconnected(&Disconnect::Closed);
}
