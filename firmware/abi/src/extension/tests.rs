use super::*;

#[test]
fn the_magic_spells_tgrs() {
    assert_eq!(&MAGIC.to_be_bytes(), b"TGRS");
    assert_eq!(Extension::Magic.bar_offset(), 0x6A0);
    assert_eq!(Extension::SendConsumer.bar_offset(), 0x6B8);
}

/// The counters are arrays, so that the numbers must be indices without a gap.
#[test]
fn counted_things_are_numbered_from_zero() {
    for (index, handler) in HANDLERS.iter().enumerate() {
        assert_eq!(handler.number() as usize, index);
        assert_eq!(Handler::from_number(index as u32), Some(*handler));
    }
    for (index, reason) in DROPS.iter().enumerate() {
        assert_eq!(reason.number() as usize, index);
        assert_eq!(DropReason::from_number(index as u32), Some(*reason));
    }
    assert_eq!(Handler::from_number(HANDLER_COUNT as u32), None);
    assert_eq!(DropReason::from_number(DROP_COUNT as u32), None);
    assert_eq!(DropReason::NoReceiveBd.name(), "NoReceiveBd");
}

/// Words that a later version adds are known before firmware fills them.
#[test]
fn versions_up_to_that_of_the_queues_are_known() {
    let known: Vec<u32> = (0..10).filter(|version| is_known(*version)).collect();
    assert_eq!(known, [1, 2, VERSION_WITH_QUEUES, VERSION_WITH_SPINE]);
    assert!(is_known(VERSION));
    assert_eq!(Extension::Queues.bar_offset(), 0x6C4);
}

#[test]
fn states_and_codes_survive_their_word() {
    for state in State::ALL {
        assert_eq!(State::from_number(state.number()), Some(*state));
    }
    for bad in BadConfig::ALL {
        assert_eq!(BadConfig::from_number(bad.number()), Some(*bad));
    }
    for code in FatalCode::ALL {
        assert_eq!(FatalCode::from_number(code.number()), Some(*code));
    }
    assert_eq!(State::from_number(0xFFFF_FFFF), None);
}
