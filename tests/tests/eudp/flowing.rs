//! The picture of ten datagrams of 32 KB.

use eudp::CutThrough;
use tigon_bench::eudp::{flow, way};
use tigon_bench::rows::Busy;

const SDMA: usize = 1;
const LINK: usize = 3;
const RDMA: usize = 5;

fn overlap(one: &Busy, other: &Busy) -> bool {
    one.from < other.to && other.from < one.to
}

/// Each datagram is posted, fetched, sent, written and seen in its turn, and the wire hardly rests. The
/// first frame is on the wire while it is fetched; as a fragment it is written when it is whole.
#[test]
fn ten_datagrams_flow_from_process_to_process() {
    let flow = flow::record(CutThrough::OfBus).unwrap_or_else(|error| panic!("{error:#}"));
    for row in &flow.rows {
        assert!(row.boxes.len() >= 10, "{} {}", row.name, row.of);
        let of: Vec<_> = row.boxes.iter().filter_map(|busy| busy.item).collect();
        assert!(of.is_sorted(), "{} {}", row.name, row.of);
        assert!(of.is_empty() || of.ends_with(&[9]), "{}: {of:?}", row.name);
    }
    assert!(
        flow.rows[LINK].share() > 0.98,
        "{}",
        flow.rows[LINK].share()
    );
    let [fetched, sent, written] = [SDMA, LINK, RDMA].map(|row| &flow.rows[row].boxes);
    assert!(fetched.iter().any(|busy| overlap(busy, &sent[0])));
    assert!(written[0].from > sent[0].to && overlap(&written[0], &sent[1]));
}

#[test]
fn the_pictures_name_every_row() {
    let folder = tempfile::tempdir().expect("a folder");
    flow::run(Some(folder.path()), false).unwrap_or_else(|error| panic!("{error:#}"));
    for name in ["eudp-stored.svg", "eudp-cut-through.svg"] {
        let picture = std::fs::read_to_string(folder.path().join(name)).expect("a picture");
        for row in ["library", "SDMA", "SEND", "link", "RECV", "RDMA"] {
            assert!(picture.contains(&format!(">{row}<")), "{name}: {row}");
        }
        assert!(picture.matches("<rect").count() > 200, "{name}");
    }
}

/// A datagram's way by the names of the functions that see to it: CPU B of the card that sends, then
/// CPU A of the one that receives, which writes it and completes it.
#[test]
fn the_listing_names_who_works_on_a_datagram() {
    let text = way::record(1472, 1500, CutThrough::Off).unwrap_or_else(|error| panic!("{error:#}"));
    let at = |card: u32, cpu: &str, function: &str| {
        let is = |line: &str| {
            let mut words = line.split_whitespace();
            let begins: f64 = words.next()?.parse().ok()?;
            let rest: Vec<&str> = words.collect();
            let of = [&*card.to_string(), cpu];
            (rest.get(3..5) == Some(&of[..]) && line.ends_with(function)).then_some(begins)
        };
        let found = text.lines().filter_map(is).collect::<Vec<_>>();
        assert!(
            !found.is_empty(),
            "no {function} on CPU {cpu} of card {card}:\n{text}"
        );
        found
    };
    let sends = at(0, "B", "work_on");
    let takes = at(1, "A", "complete_some");
    let completes = at(1, "A", "Flights>::complete");
    let last = |of: &[f64]| of.last().copied().expect("some");
    assert!(sends[0] < takes[0] && takes[0] < last(&completes), "{text}");
}
