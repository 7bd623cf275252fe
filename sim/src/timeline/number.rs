//! The number in a frame of the experiments' traffic.
//!
//! The datagrams of [`workload`](crate::workload::datagram) begin with their number.

/// Ethernet and IPv4 without options.
const ETHERNET: usize = 14;
const IPV4: usize = ETHERNET + 20;
/// Where a datagram's payload begins.
const PAYLOAD: usize = IPV4 + 8;

/// The number of a frame that is an IPv4 UDP datagram of at least eight bytes.
pub fn of_datagram(frame: &[u8]) -> Option<u64> {
    let half = |at: usize| {
        frame
            .get(at..at + 2)
            .map(|b| u16::from_be_bytes([b[0], b[1]]))
    };
    let udp = half(12) == Some(0x0800)
        && frame.get(ETHERNET) == Some(&0x45)
        && frame.get(ETHERNET + 9) == Some(&17);
    let number = frame.get(PAYLOAD..)?.first_chunk()?;
    udp.then(|| u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::of_datagram;
    use crate::workload::datagram::{Flow, PEER};

    #[test]
    fn numbers_are_those_of_the_flow_and_other_frames_have_none() {
        let flow = Flow::new(PEER, [2; 6], 18);
        assert_eq!(of_datagram(&flow.numbered(77)), Some(77));
        assert_eq!(of_datagram(&flow.numbered(5)[..49]), None, "cut");
        let mut tcp = flow.numbered(5);
        tcp[23] = 6;
        assert_eq!(of_datagram(&tcp), None);
        assert_eq!(of_datagram(&[]), None);
    }
}
