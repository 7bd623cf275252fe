use super::*;
use tigon2_chip::Register;
use tigon2_hal::resources::Resources;

const HOST: HostAddress = HostAddress {
    high: 1,
    low: 0xFFFF_FFC0,
};

const KIND: ReadKind = ReadKind::StandardBds;

fn ring() -> BdRing<5> {
    let mut ring = BdRing::new(Region::<0x1_C000, 0x100>::of_test());
    ring.configure(HOST, 0x1_C000, 8);
    ring
}

/// The descriptors that were queued, and nothing else.
struct Descriptors([u32; 64 * 8]);

impl Descriptors {
    /// Host address, local address and length of descriptor `n`.
    fn get(&self, n: usize) -> [u32; 4] {
        [0, 1, 2, 3].map(|word| self.0[8 * n + word])
    }
}

impl Bus for Descriptors {
    fn read(&mut self, _: Register) -> u32 {
        0
    }
    fn write(&mut self, _: Register, _: u32) {}
    fn load(&mut self, address: u32) -> u32 {
        self.0[address as usize / 4]
    }
    fn store(&mut self, address: u32, value: u32) {
        self.0[address as usize / 4] = value;
    }
    fn load_half(&mut self, _: u32) -> u16 {
        unreachable!("descriptors are words")
    }
    fn store_half(&mut self, _: u32, _: u16) {
        unreachable!("descriptors are words")
    }
    fn load_byte(&mut self, _: u32) -> u8 {
        unreachable!("descriptors are words")
    }
    fn store_byte(&mut self, _: u32, _: u8) {
        unreachable!("descriptors are words")
    }
}

#[test]
fn a_producer_only_goes_on_and_never_past_the_oldest() {
    let mut ring = ring();
    assert_eq!(ring.produced(8, 0), Err(OutOfRange));
    assert_eq!(ring.produced(u32::MAX, 0), Err(OutOfRange));
    assert_eq!(ring.produced(0, 0), Ok(false));
    assert_eq!(ring.produced(5, 0), Ok(true));
    assert_eq!(ring.produced(4, 0), Err(OutOfRange), "takes back");
    assert_eq!(ring.produced(5, 0), Ok(false));
    // Round the end, up to the one in front of the oldest.
    assert_eq!(ring.produced(3, 3), Err(OutOfRange), "overruns");
    assert_eq!(ring.produced(2, 3), Ok(true));
    assert_eq!(ring.produced(7, 3), Err(OutOfRange), "takes back");
    assert_eq!(ring.produced(3, 4), Ok(true));
}

/// Reference 6.1: a transfer is one run of addresses.
#[test]
fn bds_are_fetched_in_runs_to_the_place_of_their_index() {
    let mut bus = Descriptors([0; 64 * 8]);
    let mut queue = DescriptorRing::new(Resources::of_chip().read);
    let mut ring = ring();
    assert!(ring.fetch(&mut bus, &mut queue, 9, KIND), "nothing to do");
    assert_eq!(ring.produced(6, 0), Ok(true));
    assert!(ring.fetch(&mut bus, &mut queue, 9, KIND));
    assert_eq!(bus.get(0), [1, 0xFFFF_FFC0, 0x1_C000, 6 * 32]);
    assert_eq!(queue.note(0), ReadNote::bds(KIND, 6).word());
    assert!(ring.is_empty());
    ring.arrived(6);
    for index in 0..6 {
        assert!(!ring.is_empty());
        assert_eq!(ring.next(), index);
        assert_eq!(ring.next_address(), 0x1_C000 + 32 * index);
        ring.advance();
    }
    assert!(ring.is_empty());

    assert_eq!(ring.produced(3, 6), Ok(true));
    assert!(
        !ring.fetch(&mut bus, &mut queue, 9, KIND),
        "the rest follows"
    );
    assert_eq!(bus.get(1), [2, 0x80, 0x1_C0C0, 2 * 32]);
    assert_eq!(queue.note(32), ReadNote::bds(KIND, 0).word());
    assert!(ring.fetch(&mut bus, &mut queue, 9, KIND));
    assert_eq!(bus.get(2), [1, 0xFFFF_FFC0, 0x1_C000, 3 * 32]);
    assert_eq!(queue.note(64), ReadNote::bds(KIND, 3).word());
    ring.arrived(3);
    ring.advance();
    ring.advance();
    assert_eq!((ring.next(), ring.next_address()), (0, 0x1_C000));
}

#[test]
fn without_a_descriptor_nothing_counts_as_requested() {
    let mut bus = Descriptors([0; 64 * 8]);
    let mut queue = DescriptorRing::new(Resources::of_chip().read);
    let other = Transfer {
        host: HOST,
        local: 0,
        length: 8,
        state: 0,
        note: 0,
    };
    while queue.push(&mut bus, &other).is_ok() {}
    let mut ring = ring();
    assert_eq!(ring.produced(4, 0), Ok(true));
    assert!(!ring.fetch(&mut bus, &mut queue, 9, KIND));
    let mut room = DescriptorRing::new(Resources::of_chip().read);
    assert!(ring.fetch(&mut bus, &mut room, 9, KIND));
    assert_eq!(bus.get(0)[3], 4 * 32);
}
