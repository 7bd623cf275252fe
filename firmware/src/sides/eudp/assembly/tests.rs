//! Rows in a map: fragments in random orders.

extern crate std;

use super::claim::Claim;
use super::*;
use crate::memory::words::Words;
use crate::sides::eudp::pieces::Piece;
use std::vec;
use std::vec::Vec;

fn key(identification: u32) -> Key {
    Key {
        source: 1,
        destination: 2,
        identification,
    }
}

fn open(bus: &mut Words, identification: u32, now: u32) -> Option<Assembly> {
    let row = Assembly::take(bus, &key(identification), State::Open, now, |_| false)?;
    row.begin(bus, 3, 4, &Pieces::NONE);
    Some(row)
}

/// Against a map of units: fragments of any place, length and order.
#[test]
fn runs_say_what_is_there() {
    let mut bus = Words::default();
    let mut random = 1u32;
    let mut below = |most: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % most
    };
    let (mut seen, mut extended) = ([0; 4], 0);
    for identification in 0..500 {
        let row = open(&mut bus, identification, 0).expect("a row");
        let most = 8 + below(200);
        let mut there = vec![false; most as usize];
        let mut order = (identification & 1 == 1).then_some(below(3));
        for _ in 0..200 {
            // Every other datagram begins in order.
            let from = match order {
                Some(at) if at < most => at,
                _ => below(most),
            };
            let end = (from + 1 + below(6)).min(most);
            let range = from as usize..end as usize;
            let had = there[range.clone()].iter().filter(|had| **had).count();
            let joins = from > 0 && there[from as usize - 1] || end < most && there[end as usize];
            let runs = |there: &[bool]| {
                let begins = |n: &usize| there[*n] && (*n == 0 || !there[*n - 1]);
                (0..there.len()).filter(begins).count()
            };
            let bytes = (8 * from, 8 * end - 3);
            let noted = if order.is_some() && row.extend(&mut bus, bytes.0, bytes.1) {
                extended += 1;
                Noted::New
            } else {
                row.fill(&mut bus, bytes.0, bytes.1)
            };
            let expected = if had == range.len() {
                Noted::Duplicate
            } else if had != 0 {
                Noted::Overlap
            } else if runs(&there) == RUNS as usize && !joins {
                Noted::Full
            } else {
                there[range].fill(true);
                Noted::New
            };
            assert_eq!(noted, expected);
            let reach = there
                .iter()
                .rposition(|had| *had)
                .map_or(0, |last| last + 1);
            order = order.map(|_| end);
            assert_eq!(row.reach(&mut bus).div_ceil(8) as usize, reach);
            seen[expected as usize] += 1;
            row.set_length(&mut bus, 8 * most - 3);
            assert_eq!(row.is_whole(&mut bus), there.iter().all(|had| *had));
            assert_eq!(row.get(&mut bus, Row::Runs) as usize, runs(&there));
        }
        row.enter(&mut bus, State::Free);
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
    assert!(extended > 100, "{extended}");
}

#[test]
fn a_row_that_is_of_no_use_gives_way_and_no_other() {
    let mut bus = Words::default();
    let rows: Vec<_> = (0..ASSEMBLIES)
        .map(|number| open(&mut bus, number, number).expect("a row"))
        .collect();
    assert_eq!(open(&mut bus, 100, 50), None);
    rows[2].enter(&mut bus, State::Failed);
    assert_eq!(open(&mut bus, 100, 50), None);
    rows[5].enter(&mut bus, State::Host);
    rows[4].enter(&mut bus, State::Spent);
    assert_eq!(open(&mut bus, 100, 50), Some(rows[4]));
    assert_eq!(Assembly::find(&mut bus, &key(4)), None);
    assert_eq!(Assembly::find(&mut bus, &key(100)), Some(rows[4]));
    assert_eq!(open(&mut bus, 101, 50), Some(rows[5]));
    assert_eq!(open(&mut bus, 102, 50), None);
    clear(&mut bus);
    assert_eq!(Assembly::find(&mut bus, &key(100)), None);
    assert_eq!(open(&mut bus, 103, 50), Some(rows[0]));
}

/// What a datagram in the pool has taken stands between its pieces, and is gone with it.
#[test]
fn a_claim_does_not_disturb_pieces_and_runs() {
    let mut bus = Words::default();
    let row = open(&mut bus, 1, 0).expect("a row");
    let (host, bytes) = (HostAddress { high: 1, low: 2 }, 65_535);
    let mut pieces = Pieces::NONE;
    pieces.set_only(Piece { host, bytes });
    row.begin(&mut bus, 3, 4, &pieces);
    assert_eq!(row.fill(&mut bus, 1480, 2960), Noted::New);
    assert_eq!(row.claim(&mut bus), None);
    let claim = Claim {
        endpoint: 0,
        cookie: 6,
        segment: [7, 8],
    };
    row.set_claim(&mut bus, &claim);
    row.set_from(&mut bus, 9, true);
    assert_eq!(row.from(&mut bus), (9, true));
    assert_eq!(row.claim(&mut bus), Some(claim));
    assert_eq!(row.piece(&mut bus, 0), Some((host, bytes)));
    assert_eq!(row.fill(&mut bus, 1480, 2960), Noted::Duplicate);
    assert_eq!((row.endpoint(&mut bus), row.cookie(&mut bus)), (3, 4));
    row.leave_memory(&mut bus, &claim);
    assert_eq!((row.endpoint(&mut bus), row.cookie(&mut bus)), (0, 6));
    assert_eq!(row.claim(&mut bus), None);
    // The next datagram in the row has none.
    row.set_claim(&mut bus, &claim);
    row.begin(&mut bus, 3, 4, &pieces);
    assert_eq!(row.claim(&mut bus), None);
}
