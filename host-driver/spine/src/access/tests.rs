use super::*;
use std::convert::Infallible;

/// A card with 64 KB, whose firmware answers when it is asked.
struct Memory {
    words: Vec<u32>,
    rings: u32,
    /// It does not answer any more.
    hangs: bool,
}

impl Memory {
    fn new() -> Memory {
        let words = (0..0x4000).map(|word| 0xA000_0000 | word).collect();
        Memory {
            words,
            rings: 0,
            hangs: false,
        }
    }
}

impl Bar for Memory {
    type Error = Infallible;

    fn read(&mut self, offset: u32) -> Result<u32, Infallible> {
        assert!((DIRECT..DIRECT + 0x80).contains(&offset));
        Ok(self.words[(offset - DIRECT) as usize / 4])
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), Infallible> {
        assert!((DIRECT..DIRECT + 0x80).contains(&offset));
        self.words[(offset - DIRECT) as usize / 4] = value;
        Ok(())
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Infallible> {
        assert_eq!(mailbox, MAILBOX);
        if !self.hangs {
            let [request, address] = [self.words[0], self.words[1]];
            assert_ne!(request, self.words[2], "a request is another one each time");
            let count = (request & 0xFF) as usize;
            let at = address as usize / 4;
            let is_refused = at + count > self.words.len();
            for index in 0..if is_refused { 0 } else { count } {
                let (from, to) = match request & WRITE {
                    0 => (at + index, 4 + index),
                    _ => (4 + index, at + index),
                };
                self.words[to] = self.words[from];
            }
            self.words[3] = is_refused.into();
            self.words[2] = request;
            self.rings += 1;
        }
        Ok(())
    }

    fn wait(&mut self, turns: u32) -> bool {
        turns < 10
    }
}

#[test]
fn long_ranges_take_several_requests() {
    let mut card = Memory::new();
    let words: Vec<u32> = (0..100).collect();
    write(&mut card, 0x1000, &words).expect("written");
    assert_eq!(card.rings, 4, "28 words each");
    assert_eq!(card.words[0x400..0x464], words);
    assert_eq!(card.words[0x464], 0xA000_0464);
    let mut read_back = vec![0; 102];
    read(&mut card, 0xFFC, &mut read_back).expect("read");
    assert_eq!(read_back[1..101], words);
    assert_eq!([read_back[0], read_back[101]], [0xA000_03FF, 0xA000_0464]);
    read(&mut card, 0x1000, &mut []).expect("nothing");
}

#[test]
fn what_is_not_there_is_an_error() {
    let mut card = Memory::new();
    let read_there = read(&mut card, 0xFFFC, &mut [0; 2]);
    assert!(matches!(read_there, Err(AccessError::NoSuchWords(0xFFFC))));
    let written_there = write(&mut card, 0x1_0000, &[1]);
    assert!(matches!(
        written_there,
        Err(AccessError::NoSuchWords(0x1_0000))
    ));
    card.hangs = true;
    let silent = read(&mut card, 0x1000, &mut [0]);
    assert!(matches!(silent, Err(AccessError::NoAnswer)));
}
