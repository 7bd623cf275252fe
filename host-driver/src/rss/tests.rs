use super::*;

fn rss(kind: ClassifierKind, queues: u32, types: HashTypes) -> Rss {
    let table = IndirectionTable::equal(queues as u8);
    Rss::new(kind, queues, types, &Key::PUBLISHED, &table).expect("settings")
}

fn flow(protocol: Protocol, source: &str, destination: &str) -> Flow {
    Flow {
        protocol,
        source: source.parse().expect("an address"),
        destination: destination.parse().expect("an address"),
    }
}

/// Two lines of the published verification suite.
#[test]
fn a_hash_is_explained_with_its_entry() {
    let rss = rss(ClassifierKind::Toeplitz, 4, HashTypes::USUAL);
    let segment = flow(Protocol::Tcp, "66.9.149.187:2794", "161.142.100.80:1766");
    let explained = rss.explain(&segment).expect("an answer");
    assert_eq!(
        explained.to_string(),
        "queue 0: hash 0x51ccc178 of addresses and ports (TcpIpv4), entry 120"
    );
    let datagram = Flow {
        protocol: Protocol::Udp,
        ..segment
    };
    let explained = rss.explain(&datagram).expect("an answer");
    assert_eq!(
        explained.to_string(),
        "queue 2: hash 0x323e8fc2 of addresses (Ipv4), entry 66; \
         the hash with ports is off for this protocol"
    );
    let new = flow(
        Protocol::Tcp,
        "[3ffe:2501:200:1fff::7]:2794",
        "[3ffe:2501:200:3::1]:1766",
    );
    let explained = rss.explain(&new).expect("an answer");
    assert_eq!(
        explained.to_string(),
        "queue 1: hash 0x40207d3d of addresses and ports (TcpIpv6), entry 61"
    );
}

#[test]
fn other_classifiers_say_what_they_go_by() {
    let asked = flow(Protocol::Tcp, "10.0.0.7:1", "10.0.0.1:2");
    let said = |kind, queues| {
        let rss = rss(kind, queues, HashTypes::USUAL);
        rss.explain(&asked).expect("an answer").to_string()
    };
    assert_eq!(
        said(ClassifierKind::SourceAddress, 4),
        "queue 3: the source address ends in 7, 7 & 3 chooses"
    );
    assert_eq!(
        said(ClassifierKind::RoundRobin, 3),
        "any queue: classifier round-robin takes them in turn"
    );
    assert_eq!(
        said(ClassifierKind::Single, 1),
        "queue 0: classifier single sends all there"
    );
    let none = rss(ClassifierKind::Toeplitz, 4, HashTypes::new());
    let explained = none.explain(&asked).expect("an answer");
    assert_eq!(
        explained.to_string(),
        "queue 0: no type of hash is on for it"
    );
}

/// What the run with two queues needs: eight streams on each.
#[test]
fn a_source_port_leads_to_each_queue() {
    let rss = rss(ClassifierKind::Toeplitz, 8, HashTypes::USUAL);
    let mut asked = flow(Protocol::Tcp, "10.0.0.2:0", "10.0.0.1:5201");
    for queue in 0..8 {
        let mut from = 40_000;
        for _ in 0..8 {
            let port = rss.source_port(&asked, queue, from..=u16::MAX);
            let port = port.expect("an answer").expect("a port");
            asked.source.set_port(port);
            let explained = rss.explain(&asked).expect("an answer");
            assert_eq!(explained.queue, Some(queue), "port {port}");
            from = port + 1;
        }
    }
}

#[test]
fn ports_that_do_not_count_lead_nowhere() {
    let rss = rss(ClassifierKind::Toeplitz, 8, HashTypes::USUAL);
    for protocol in [Protocol::Udp, Protocol::Other] {
        let asked = flow(protocol, "10.0.0.2:0", "10.0.0.1:5201");
        let all = 0..=u16::MAX;
        let mine = rss.explain(&asked).expect("an answer").queue.expect("one");
        assert_eq!(rss.source_port(&asked, mine, all.clone()), Ok(Some(0)));
        assert_eq!(rss.source_port(&asked, (mine + 1) % 8, all), Ok(None));
    }
}

#[test]
fn what_no_card_would_take_is_refused() {
    let table = IndirectionTable::equal(4);
    let new = |kind, queues| {
        let rss = Rss::new(kind, queues, HashTypes::USUAL, &Key::PUBLISHED, &table);
        rss.map(|_| ())
    };
    assert_eq!(
        new(ClassifierKind::Toeplitz, 9),
        Err(RssError::Classifier(BadClassifier::Queues(9)))
    );
    assert_eq!(
        new(ClassifierKind::SourceAddress, 3),
        Err(RssError::Classifier(BadClassifier::NoPowerOfTwo(3)))
    );
    assert_eq!(
        new(ClassifierKind::Toeplitz, 2),
        Err(RssError::TableEntry { entry: 2 })
    );
    let mixed = flow(Protocol::Tcp, "10.0.0.2:1", "[::1]:2");
    let rss = rss(ClassifierKind::Toeplitz, 4, HashTypes::USUAL);
    assert_eq!(
        rss.explain(&mixed),
        Err(RssError::Versions(
            mixed.source.ip(),
            mixed.destination.ip()
        ))
    );
}
