//! A destination that excludes fragments gets whole packets alone.

mod peer;
mod support;

use eudp::SendError;
use peer::peer;
use support::Local;

/// Bytes of the longest datagram in a packet of 1500.
const FITS: usize = 1472;

#[test]
fn a_datagram_of_two_packets_is_refused_where_there_may_be_no_fragments() {
    let mut local = Local::new();
    let [whole, any] = [true, false].map(|excluded| peer(&mut local, excluded));
    let mut send = |to, pieces: &[u32]| {
        let pieces: Vec<_> = (pieces.iter())
            .map(|bytes| local.region.segment(0, *bytes))
            .collect();
        let sent = local.endpoint.send(&mut local.card, (to, 9), &pieces, 1);
        (sent, local.endpoint.sending())
    };
    assert!(matches!(send(whole, &[FITS as u32]), (Ok(()), 1)));
    assert!(matches!(send(whole, &[FITS as u32 - 1, 1]), (Ok(()), 2)));
    for pieces in [&[FITS as u32 + 1][..], &[FITS as u32, 1], &[65_507]] {
        let long = pieces.iter().sum::<u32>() as usize;
        let (refused, sending) = send(whole, pieces);
        let Err(SendError::NeedsFragments { bytes, most }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((bytes, most, sending), (long, FITS, 2));
    }
    // Elsewhere it may be sent, and the card was told of none that was refused.
    assert!(matches!(send(any, &[FITS as u32 + 1]), (Ok(()), 3)));
    let words: Vec<u32> = local.card.rung.iter().map(|(_, word)| word >> 16).collect();
    assert_eq!(words, [1, 2, 3]);
}
