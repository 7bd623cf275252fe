//! The picture of ten datagrams of 32 KB.

use eudp::CutThrough;
use tigon_bench::eudp::flow;
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
    flow::run(Some(folder.path())).unwrap_or_else(|error| panic!("{error:#}"));
    for name in ["eudp-stored.svg", "eudp-cut-through.svg"] {
        let picture = std::fs::read_to_string(folder.path().join(name)).expect("a picture");
        for row in ["library", "SDMA", "SEND", "link", "RECV", "RDMA"] {
            assert!(picture.contains(&format!(">{row}<")), "{name}: {row}");
        }
        assert!(picture.matches("<rect").count() > 200, "{name}");
    }
}
