//! The ring against a plain queue, and payload against a plain buffer.

use std::collections::VecDeque;
use std::fs::File;

use dti::mapped::Mapping;
use dti::ring::{Consumer, Place, Producer, RingError, ring_words};
use dti::words::{read_bytes, write_bytes};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_ring_behaves_as_a_bounded_queue(
        bits in 0u32..5,
        steps in prop::collection::vec(any::<Option<[u64; 4]>>(), 0..200),
    ) {
        let place = Place { start: 8, capacity: 1 << bits };
        let memory = Mapping::create(8 + ring_words(place.capacity)).expect("memory");
        let (mut producer, mut consumer) = (Producer::new(place), Consumer::new(place));
        let mut queue = VecDeque::new();
        for step in steps {
            match step {
                Some(_) if queue.len() == place.capacity => {
                    prop_assert_eq!(producer.push(&memory, [0; 4]), Err(RingError::Full));
                }
                Some(entry) => {
                    prop_assert_eq!(producer.push(&memory, entry), Ok(()));
                    queue.push_back(entry);
                }
                None => prop_assert_eq!(consumer.pop(&memory), Ok(queue.pop_front())),
            }
            prop_assert_eq!(consumer.waiting(&memory), Ok(queue.len()));
            prop_assert_eq!(producer.room(&memory), Ok(place.capacity - queue.len()));
        }
    }

    #[test]
    fn payload_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let memory = Mapping::create(64).expect("memory");
        write_bytes(&memory, 5, &bytes);
        let mut back = vec![0; bytes.len()];
        read_bytes(&memory, 5, &mut back);
        prop_assert_eq!(back, bytes);
    }
}

#[test]
fn a_file_that_could_shrink_is_refused() {
    let file = File::open("/dev/null").expect("a device");
    assert!(Mapping::open(file.into()).is_err());
    let loose = rustix::fs::memfd_create("loose", rustix::fs::MemfdFlags::ALLOW_SEALING);
    let loose = loose.expect("a memory file");
    rustix::fs::ftruncate(&loose, 4096).expect("room");
    assert_eq!(Mapping::open(loose).err(), Some(rustix::io::Errno::PERM));
}
