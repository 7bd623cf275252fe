//! A peer of an engine that sends single segments, as a test wants them.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use eta::memory_wire::MemoryWire;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, IpAddress,
    IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};

const STATION: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 9]);
const ENGINE: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 1]);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// A segment of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    pub control: TcpControl,
    pub sequence: i32,
    pub acknowledged: Option<i32>,
    pub payload: Vec<u8>,
    /// Its checksum is right.
    pub whole: bool,
}

/// One port of the peer at the other end of the wire of the engine 10.77.0.1.
pub struct Peer {
    wire: MemoryWire,
    port: u16,
}

impl Peer {
    pub fn new(wire: MemoryWire, port: u16) -> Self {
        Self { wire, port }
    }

    fn frame(&self, protocol: EthernetProtocol, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; 14 + length];
        let mut frame = EthernetFrame::new_unchecked(&mut bytes);
        frame.set_src_addr(STATION);
        frame.set_dst_addr(ENGINE);
        frame.set_ethertype(protocol);
        bytes
    }

    /// Sends a segment to a port of the engine.
    pub fn send(&self, to: u16, control: TcpControl, sequence: i32, acknowledged: Option<i32>) {
        self.send_with(to, control, sequence, acknowledged, &[]);
    }

    /// Sends a segment with payload.
    pub fn send_with(
        &self,
        to: u16,
        control: TcpControl,
        sequence: i32,
        acknowledged: Option<i32>,
        payload: &[u8],
    ) {
        self.put(self.frame_from(self.port, to, control, sequence, acknowledged, payload));
    }

    /// Sends a frame as it is.
    pub fn put(&self, frame: Vec<u8>) {
        self.wire.put(frame);
    }

    /// A segment's frame from any port.
    pub fn frame_from(
        &self,
        from: u16,
        to: u16,
        control: TcpControl,
        sequence: i32,
        acknowledged: Option<i32>,
        payload: &[u8],
    ) -> Vec<u8> {
        let tcp = TcpRepr {
            src_port: from,
            dst_port: to,
            control,
            seq_number: TcpSeqNumber(sequence),
            ack_number: acknowledged.map(TcpSeqNumber),
            window_len: 60_000,
            window_scale: None,
            max_seg_size: (control == TcpControl::Syn).then_some(1460),
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload,
        };
        let ip = Ipv4Repr {
            src_addr: NEAR,
            dst_addr: FAR,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let sums = ChecksumCapabilities::default();
        let mut bytes = self.frame(EthernetProtocol::Ipv4, 20 + tcp.buffer_len());
        ip.emit(&mut Ipv4Packet::new_unchecked(&mut bytes[14..]), &sums);
        tcp.emit(
            &mut TcpPacket::new_unchecked(&mut bytes[34..]),
            &IpAddress::Ipv4(NEAR),
            &IpAddress::Ipv4(FAR),
            &sums,
        );
        bytes
    }

    /// The engine's next segment, if one comes in time. Its questions for an address are answered.
    pub fn hear_within(&self, limit: Duration) -> Option<Heard> {
        let start = Instant::now();
        while start.elapsed() < limit {
            let Some(bytes) = self.wire.take() else {
                std::thread::sleep(Duration::from_micros(100));
                continue;
            };
            let frame = EthernetFrame::new_checked(&bytes[..]).expect("a frame");
            match frame.ethertype() {
                EthernetProtocol::Arp => self.answer(frame.payload()),
                EthernetProtocol::Ipv4 => {
                    let packet = Ipv4Packet::new_checked(frame.payload()).expect("a packet");
                    let tcp = TcpPacket::new_checked(packet.payload()).expect("a segment");
                    if tcp.dst_port() == self.port {
                        return Some(heard(&tcp));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The engine's next segment.
    pub fn hear(&self) -> Heard {
        self.hear_within(super::LIMIT).expect("a segment")
    }

    fn answer(&self, packet: &[u8]) {
        let asked = ArpPacket::new_checked(packet).and_then(|packet| ArpRepr::parse(&packet));
        let Ok(ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr,
            source_protocol_addr,
            target_protocol_addr: NEAR,
            ..
        }) = asked
        else {
            return;
        };
        let answer = ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Reply,
            source_hardware_addr: STATION,
            source_protocol_addr: NEAR,
            target_hardware_addr: source_hardware_addr,
            target_protocol_addr: source_protocol_addr,
        };
        let mut bytes = self.frame(EthernetProtocol::Arp, answer.buffer_len());
        answer.emit(&mut ArpPacket::new_unchecked(&mut bytes[14..]));
        self.wire.put(bytes);
    }

    /// Opens a connection to a port of the engine by the first sequence number; the engine's next
    /// one.
    pub fn open(&self, to: u16, first: i32) -> i32 {
        self.send(to, TcpControl::Syn, first, None);
        let answer = self.hear();
        assert_eq!(answer.control, TcpControl::Syn);
        assert_eq!(answer.acknowledged, Some(first.wrapping_add(1)));
        let next = answer.sequence.wrapping_add(1);
        self.send(to, TcpControl::None, first.wrapping_add(1), Some(next));
        next
    }
}

fn heard(tcp: &TcpPacket<&[u8]>) -> Heard {
    let control = match (tcp.syn(), tcp.fin(), tcp.rst()) {
        (true, _, _) => TcpControl::Syn,
        (_, true, _) => TcpControl::Fin,
        (_, _, true) => TcpControl::Rst,
        _ => TcpControl::None,
    };
    Heard {
        control,
        sequence: tcp.seq_number().0,
        acknowledged: tcp.ack().then(|| tcp.ack_number().0),
        payload: tcp.payload().to_vec(),
        whole: tcp.verify_checksum(&IpAddress::Ipv4(FAR), &IpAddress::Ipv4(NEAR)),
    }
}
