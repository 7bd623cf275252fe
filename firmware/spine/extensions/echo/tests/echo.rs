//! The extension, run natively against the model of the API; frames by another's code.

use spine::Verdict;
use spine::model::Domain;
use spine_echo::{ANSWER, ANSWERS, init};

/// RFC 1071, for whole frames: what a checksum over it must fold to 0xFFFF.
fn sum(bytes: &[u8]) -> u32 {
    let pairs = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(*high) << 8 | u32::from(*low),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let sum: u32 = pairs.sum();
    let sum = (sum >> 16) + (sum & 0xFFFF);
    (sum >> 16) + (sum & 0xFFFF)
}

fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend(length.to_be_bytes());
    ip.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0]);
    ip.extend([192, 168, 1, 9, 192, 168, 1, 1]);
    let checksum = !(sum(&ip) as u16);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = vec![2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0];
    frame.extend(ip);
    frame.extend(payload);
    frame
}

fn ping(data: &[u8]) -> Vec<u8> {
    let mut icmp = vec![8, 0, 0, 0, 0xBE, 0xEF, 0, 7];
    icmp.extend(data);
    let checksum = !(sum(&icmp) as u16);
    icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
    packet(1, &icmp)
}

#[test]
fn a_ping_comes_back_with_right_sums() {
    let mut domain = Domain::load(init);
    for length in 0..200 {
        let data: Vec<u8> = (0..length).map(|n| (n * 37 + length) as u8).collect();
        let frame = ping(&data);
        let run = domain.frame(ANSWER, &frame).expect("installed");
        assert_eq!(run.verdict, Some(Verdict::Consume));
        let answer = run.transmitted.expect("an answer");
        assert_eq!(answer.len(), frame.len());
        assert_eq!((&answer[..6], &answer[6..12]), (&frame[6..12], &frame[..6]));
        assert_eq!(
            (&answer[26..30], &answer[30..34]),
            (&frame[30..34], &frame[26..30])
        );
        assert_eq!(answer[34..36], [0, 0], "an echo reply");
        assert_eq!(answer[38..], frame[38..], "identifier, number and data");
        assert_eq!(sum(&answer[14..34]), 0xFFFF, "the IP header's sum");
        assert_eq!(sum(&answer[34..]), 0xFFFF, "ICMP's sum");
    }
    assert_eq!(domain.counter(ANSWERS as usize), Some(200));
}

#[test]
fn a_datagram_to_the_echo_port_comes_back() {
    let mut domain = Domain::load(init);
    let frame = packet(17, &[0x30, 0x39, 0, 7, 0, 13, 0xAB, 0xCD, 1, 2, 3, 4, 5]);
    let run = domain.frame(ANSWER, &frame).expect("installed");
    let answer = run.transmitted.expect("an answer");
    assert_eq!(answer[34..42], [0, 7, 0x30, 0x39, 0, 13, 0xAB, 0xCD]);
    assert_eq!(answer[42..], [1, 2, 3, 4, 5]);
}

#[test]
fn all_else_is_the_hosts() {
    let mut domain = Domain::load(init);
    let echo = ping(&[1; 30]);
    let with = |at: usize, value: u8| {
        let mut frame = echo.clone();
        frame[at] = value;
        frame
    };
    for frame in [
        Vec::new(),
        echo[..33].to_vec(),
        echo[..41].to_vec(),
        with(12, 0x86), // not IPv4
        with(0, 0xFF),  // to all stations
        with(0, 0x33),  // to a group of stations
        with(14, 0x46), // options
        with(20, 0x60), // a fragment, more of them
        with(21, 1),    // a fragment
        with(23, 6),    // TCP
        with(34, 0),    // a reply
        with(35, 1),
        packet(17, &[0, 7, 0, 7, 0, 8, 0, 0]), // from echo port to echo port: for ever
        packet(17, &[0, 9, 0, 8, 0, 8, 0, 0]),
    ] {
        let run = domain.frame(ANSWER, &frame).expect("installed");
        assert_eq!(
            (run.verdict, run.transmitted),
            (Some(Verdict::Host), None),
            "{frame:x?}"
        );
    }
}

#[test]
fn what_is_too_long_for_the_card_to_keep_is_the_hosts() {
    let mut domain = Domain::load(init);
    let run = domain.frame(ANSWER, &ping(&[1; 1600])).expect("installed");
    assert_eq!((run.verdict, run.transmitted), (Some(Verdict::Host), None));
    assert_eq!(domain.counter(ANSWERS as usize), Some(0));
}
