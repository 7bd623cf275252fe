//! Tests the multicast list: exact matches, addresses that are there twice or not, overflow.

use crate::machine::{MAC, NativeCard};
use crate::nic::{open, takes};
use host_driver::{Config, Nic, NicError};
use tigon2_chip::Register;
use tigon2_chip::mac::multicast_hash_bit;

/// Addresses that the list holds.
const CAPACITY: u16 = 64;

fn group(number: u16) -> [u8; 6] {
    let [a, b] = number.to_be_bytes();
    [0x01, 0x00, 0x5E, 0x01, a, b]
}

fn add(nic: &mut Nic<NativeCard>, address: [u8; 6]) {
    nic.add_multicast(address).expect("event 08: added");
}

fn delete(nic: &mut Nic<NativeCard>, address: [u8; 6]) {
    nic.delete_multicast(address).expect("event 08: deleted");
}

fn hash(nic: &mut Nic<NativeCard>) -> [u32; 4] {
    [
        Register::MulticastHash0,
        Register::MulticastHash1,
        Register::MulticastHash2,
        Register::MulticastHash3,
    ]
    .map(|register| nic.peek_register(register.offset()).expect("a register"))
}

/// An address that shares its hash bit with one in the list is not wanted for that; deleting one
/// of them leaves the other.
#[test]
fn twins_in_the_hash_are_distinguished() {
    let wanted = group(1);
    let twin = (2..=u16::MAX)
        .map(group)
        .find(|address| multicast_hash_bit(address) == multicast_hash_bit(&wanted))
        .expect("one in 128");
    let nic = &mut open(Config::default());
    add(nic, wanted);
    assert!(takes(nic, wanted) && !takes(nic, twin));
    nic.transport().pass(11_000);
    let drops = nic.firmware_drops().expect("counts");
    assert_eq!(drops.get("NotSubscribed"), Some(1));
    add(nic, twin);
    assert!(takes(nic, wanted) && takes(nic, twin));
    delete(nic, wanted);
    assert!(!takes(nic, wanted) && takes(nic, twin));
    delete(nic, twin);
    assert!(!takes(nic, twin));
    assert_eq!(hash(nic), [0; 4]);
}

/// Twice the same counts once; what is not there can be deleted.
#[test]
fn an_address_is_in_the_list_once() {
    let nic = &mut open(Config::default());
    delete(nic, group(9));
    for _ in 0..3 {
        add(nic, group(9));
    }
    delete(nic, group(9));
    assert!(!takes(nic, group(9)));
}

/// More addresses than the list holds: every multicast is taken until they are gone.
#[test]
fn a_list_that_is_full_takes_every_multicast() {
    let nic = &mut open(Config::default());
    for number in 0..CAPACITY {
        add(nic, group(number));
    }
    let stranger = group(1000);
    assert!(takes(nic, group(0)) && !takes(nic, stranger));
    for number in CAPACITY..CAPACITY + 3 {
        add(nic, group(number));
        assert!(takes(nic, group(number)) && takes(nic, stranger));
    }
    // Room in the list does not bring back what never was in it.
    delete(nic, group(0));
    assert!(takes(nic, group(CAPACITY)));
    for number in CAPACITY..CAPACITY + 3 {
        assert!(takes(nic, stranger));
        delete(nic, group(number));
    }
    assert!(!takes(nic, stranger) && !takes(nic, group(0)));
    assert!(takes(nic, group(1)) && takes(nic, group(CAPACITY - 1)));
    // All-multicast goes on and off above all of this.
    nic.set_all_multicast(true).expect("a card");
    assert!(takes(nic, stranger));
    assert_eq!(hash(nic), [u32::MAX; 4]);
    nic.set_all_multicast(false).expect("a card");
    assert!(!takes(nic, stranger) && takes(nic, group(1)));
}

/// A bad argument: an address that is no group's.
#[test]
fn a_station_address_is_refused() {
    let nic = &mut open(Config::default());
    let refused = |result| matches!(result, Err(NicError::FirmwareRefused { .. }));
    assert!(refused(nic.add_multicast(MAC)));
    assert!(refused(nic.delete_multicast(MAC)));
    assert_eq!(hash(nic), [0; 4]);
    assert!(takes(nic, MAC));
}
