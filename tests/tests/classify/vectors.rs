//! Tests the published verification suite of the hash ("Verifying the RSS hash calculation"):
//! destination, source, hash of the addresses, hash of addresses and ports.

use flow_classify::frame::Whole;
use flow_classify::{
    Classifier, ClassifierKind, HashType, HashTypes, IndirectionTable, Key, Tables, Verdict,
};
use std::net::{IpAddr, SocketAddr};
use tigon2_sim::workload::knet::reference::toeplitz;

const SUITE: [(&str, &str, u32, u32); 8] = [
    (
        "161.142.100.80:1766",
        "66.9.149.187:2794",
        0x323E_8FC2,
        0x51CC_C178,
    ),
    (
        "65.69.140.83:4739",
        "199.92.111.2:14230",
        0xD718_262A,
        0xC626_B0EA,
    ),
    (
        "12.22.207.184:38024",
        "24.19.198.95:12898",
        0xD2D0_A5DE,
        0x5C2B_394A,
    ),
    (
        "209.142.163.6:2217",
        "38.27.205.30:48228",
        0x8298_9176,
        0xAFC7_327F,
    ),
    (
        "202.188.127.2:1303",
        "153.39.163.191:44251",
        0x5D18_09C5,
        0x10E8_28A2,
    ),
    (
        "[3ffe:2501:200:3::1]:1766",
        "[3ffe:2501:200:1fff::7]:2794",
        0x2CC1_8CD5,
        0x4020_7D3D,
    ),
    (
        "[ff02::1]:4739",
        "[3ffe:501:8::260:97ff:fe40:efab]:14230",
        0x0F0C_461C,
        0xDDE5_1BBF,
    ),
    (
        "[fe80::200:f8ff:fe21:67cf]:38024",
        "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
        0x4B61_E985,
        0x02D1_FEEF,
    ),
];

/// A TCP segment or a UDP datagram in a frame.
fn frame(protocol: u8, source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut frame = vec![0; 12];
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x86, 0xDD, 0x60, 0, 0, 0, 0, 20, protocol, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        _ => panic!("both are of one version"),
    }
    frame.extend(source.port().to_be_bytes());
    frame.extend(destination.port().to_be_bytes());
    frame.extend([0; 16]);
    frame
}

fn classify(types: HashTypes, frame: &[u8]) -> Verdict {
    let key = Key::PUBLISHED;
    let kind = ClassifierKind::Toeplitz;
    let mut classifier = Classifier::new(kind, 8, types, key.period()).expect("a classifier");
    let tables = Tables::new(&key, &IndirectionTable::equal(8));
    let length = frame.len() as u32;
    classifier.classify(&mut (Whole(frame), &tables), length)
}

#[test]
fn frames_of_the_suite_have_their_hashes() {
    for (destination, source, addresses, with_ports) in SUITE {
        let destination: SocketAddr = destination.parse().expect("an address");
        let source: SocketAddr = source.parse().expect("an address");
        let (any, tcp, udp) = if source.is_ipv4() {
            (HashType::Ipv4, HashType::TcpIpv4, HashType::UdpIpv4)
        } else {
            (HashType::Ipv6, HashType::TcpIpv6, HashType::UdpIpv6)
        };
        let [segment, datagram] = [6, 17].map(|protocol| frame(protocol, source, destination));
        let without = HashTypes::new().with_ipv4(true).with_ipv6(true);
        for (types, frame, hash_type, hash) in [
            (HashTypes::USUAL, &segment, tcp, with_ports),
            (HashTypes::ALL, &datagram, udp, with_ports),
            (HashTypes::USUAL, &datagram, any, addresses),
            (without, &segment, any, addresses),
        ] {
            let verdict = classify(types, frame);
            let queue = hash & 7;
            let expected = Verdict {
                queue,
                hash_type,
                hash,
            };
            assert_eq!(verdict, expected, "{source} to {destination}");
        }
        assert_eq!(classify(HashTypes::new(), &segment), Verdict::NONE);
    }
}

/// The reference by itself, so that both are not wrong alike.
#[test]
fn the_reference_makes_the_suites_hashes() {
    for (destination, source, addresses, with_ports) in SUITE {
        let [destination, source]: [SocketAddr; 2] =
            [destination, source].map(|address| address.parse().expect("an address"));
        let mut input = Vec::new();
        for address in [source, destination] {
            match address.ip() {
                IpAddr::V4(address) => input.extend(address.octets()),
                IpAddr::V6(address) => input.extend(address.octets()),
            }
        }
        assert_eq!(toeplitz(&Key::PUBLISHED.0, &input), addresses);
        for address in [source, destination] {
            input.extend(address.port().to_be_bytes());
        }
        assert_eq!(toeplitz(&Key::PUBLISHED.0, &input), with_ports);
    }
}
