use super::*;

#[test]
fn fields_cover_the_block_without_a_gap() {
    let mut word = 0;
    for field in FIELDS {
        assert_eq!(field.word, word, "{}", field.name);
        word += field.words;
    }
    assert_eq!(word, WORDS);
}

#[test]
fn words_and_fields_are_the_same_memory() {
    let mut statistics = Statistics::ZERO;
    statistics.in_octets = Counter64::new(0x1_0000_0002);
    statistics.interrupts = 7;
    statistics.collision_histogram[14] = 9;
    let words = statistics.words();
    assert_eq!((words[36], words[37], words[82], words[147]), (1, 2, 7, 9));
    assert_eq!(words.iter().filter(|word| **word != 0).count(), 4);
    assert_eq!(Statistics::from_words(*words), statistics);
}

#[test]
fn a_counter_carries_into_its_high_word() {
    let mut counter = Counter64::new(0xFFFF_FFFF);
    counter.add(2);
    assert_eq!(counter, Counter64 { high: 1, low: 1 });
    assert_eq!(counter.get(), 0x1_0000_0001);
    counter.subtract(2);
    assert_eq!(counter.get(), 0xFFFF_FFFF);
    let mut last = Counter64::new(u64::MAX);
    last.add(1);
    assert_eq!(last.get(), 0);
}
