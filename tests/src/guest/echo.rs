//! Pings that distinguish a late reply from a lost one.
//!
//! `ping` exits after two of the round-trip times that it has measured, which on a busy machine is
//! too early for its last replies. With a deadline it continues until it has as many replies as
//! requested; if those are the replies to the first requests, in order, then none was lost.

use std::time::Duration;

/// How long all replies may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// The command line of `count` pings of `payload` bytes, 2 ms apart.
pub fn command(address: &str, payload: u32, count: u32) -> String {
    let deadline = DEADLINE.as_secs();
    format!("ping -n -i 0.002 -w {deadline} -c {count} -s {payload} {address}")
}

/// How long that command may take.
pub fn limit() -> Duration {
    DEADLINE + Duration::from_secs(20)
}

/// Whether what the command printed shows the replies to requests 1 to `count`,
/// each once, in order and with the right bytes; else why not.
///
/// # Errors
/// What is wrong with the replies.
pub fn judge(said: &str, count: u32) -> Result<(), String> {
    let numbers = said.lines().filter_map(|line| {
        let (_, rest) = line.split_once("icmp_seq=")?;
        rest.split(' ').next()?.parse::<u32>().ok()
    });
    let numbers: Vec<u32> = numbers.collect();
    if said.contains("wrong data") || said.contains("DUP!") || said.contains("rror") {
        return Err(format!("a bad reply: {said}"));
    }
    let in_order = numbers.iter().copied().zip(1..).all(|(a, b)| a == b);
    if in_order && numbers.len() >= count as usize {
        return Ok(());
    }
    Err(format!(
        "not the replies to 1..={count}: {numbers:?}: {said}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(number: u32) -> String {
        format!("64 bytes from 10.79.0.2: icmp_seq={number} ttl=64 time=0.2 ms\n")
    }

    #[test]
    fn a_late_reply_is_not_a_lost_one() {
        let said = [1, 2, 3].map(reply).concat();
        let late = format!("{said}5 packets transmitted, 3 received, 40% packet loss");
        assert_eq!(judge(&late, 3), Ok(()));
        let lost = [1, 3, 4].map(reply).concat();
        assert!(judge(&lost, 3).is_err());
        assert!(judge(&said, 4).is_err());
    }

    #[test]
    fn wrong_bytes_and_second_replies_are_noticed() {
        let said = format!("{}wrong data byte #20 should be 0x14", reply(1));
        assert!(judge(&said, 1).is_err());
        assert!(judge(&reply(1).replace(" ms", " ms (DUP!)"), 1).is_err());
    }
}
