//! Memory files of the process's own.

mod peer;
mod support;

use eudp::{Access, EudpError, Region, SendError};
use peer::peer;
use std::fs::File;
use std::os::fd::OwnedFd;
use support::{Local, MAPPED};

fn register(local: &mut Local, access: Access) -> Option<Region> {
    let file = OwnedFd::from(File::open("/dev/null").expect("a file"));
    let endpoint = &mut local.endpoint;
    let region = (local.eudp).register_file(&mut local.card, endpoint, file, access);
    match region {
        Ok(region) => Some(region),
        Err(EudpError::TooMany { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn nothing_is_received_where_the_card_may_only_read() {
    let mut local = Local::new();
    let peer = (peer(&mut local, false), 9);
    let region = register(&mut local, Access::Read).expect("room");
    assert_eq!(
        (region.access(), region.bytes()),
        (Access::Read, MAPPED as u32)
    );
    let [own, lent] = [local.region, region].map(|region| region.segment(0, 100));
    let sent = local.endpoint.send(&mut local.card, peer, &[own, lent], 1);
    sent.expect("it is read");
    for pieces in [&[lent][..], &[own, lent]] {
        let refused = local.endpoint.post(&mut local.card, pieces, 2);
        assert!(matches!(refused, Err(SendError::ReadOnly)), "{refused:?}");
    }
    assert_eq!(local.endpoint.receiving(), 0);
    let region = register(&mut local, Access::ReadWrite).expect("room");
    let posted = [own, region.segment(0, 100)];
    let posted = local.endpoint.post(&mut local.card, &posted, 3);
    posted.expect("it is written");
}

#[test]
fn files_end_with_their_endpoint() {
    let mut local = Local::new();
    // The endpoint has a region already.
    for number in 1..64 {
        register(&mut local, Access::ReadWrite).expect("room");
        assert_eq!(local.card.mapped, number);
    }
    assert!(register(&mut local, Access::ReadWrite).is_none());
    assert_eq!(local.card.mapped, 63, "what has no row is not mapped");
    let closed = local.eudp.close(&mut local.card, local.endpoint);
    closed.expect("the firmware answers");
    assert_eq!(local.card.mapped, 0);
}
