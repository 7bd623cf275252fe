//! Answers pings and UDP echo (RFC 862) from the card, without the host.
//!
//! The answer is the question with its addresses exchanged, so nothing is copied but the
//! frame, and its checksums stay right: exchanging two words changes no sum. Of a ping the
//! type changes too, from 8 to 0, and the checksum by as much (RFC 1624).
#![no_std]

use spine::headers::{ICMP, IPV4, Icmp, Ipv4, UDP, Udp};
use spine::{
    Argument, Context, Durable, Ephemeral, Full, HandlerNumber, Message, Verdict, Word, add_handler,
};

/// The handler's number.
pub const ANSWER: HandlerNumber = HandlerNumber(0);
/// Counter of the domain's: answers.
pub const ANSWERS: u32 = 0;
/// UDP's echo port.
pub const ECHO_PORT: u16 = 7;

/// Frames that could not be answered, and went to the host.
static LEFT_TO_HOST: Word = Word::new(0);

/// Installs the handler.
pub fn init(durable: &mut Durable) {
    add_handler(durable, answer, ANSWER, Argument::NIL);
}

/// Answers what asks for an echo; all else is the host's.
fn answer(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    match reply(message, context) {
        Some(Ok(())) => Verdict::Consume,
        Some(Err(Full)) => {
            LEFT_TO_HOST.add(1);
            Verdict::Host
        }
        None => Verdict::Host,
    }
}

fn reply(message: &Message, context: &Context) -> Option<Result<(), Full>> {
    let frame = message.buffer();
    let ip: Ipv4<'_> = frame.view(14)?;
    let words = frame.words().first_chunk::<10>()?;
    // To this station alone: the answer leaves from the address that the question came to.
    let plain = words[0] & 0x0100_0000 == 0
        && words[3] >> 16 == u32::from(IPV4)
        && ip.version_and_length() == 0x45
        && ip.fragment() & 0x3FFF == 0;
    if !plain {
        return None;
    }
    let (first, second) = match ip.protocol() {
        ICMP => {
            let icmp: Icmp<'_> = frame.view(34)?;
            if icmp.kind() != 8 || icmp.code() != 0 {
                return None;
            }
            // The type was the high byte of a halfword of the sum, and becomes 0.
            let sum = u32::from(icmp.checksum()) + 0x0800;
            let sum = (sum + (sum >> 16)) & 0xFFFF;
            (0, sum << 16 | u32::from(icmp.identifier()))
        }
        UDP => {
            let udp: Udp<'_> = frame.view(34)?;
            if udp.destination() != ECHO_PORT || udp.source() == ECHO_PORT {
                return None;
            }
            let second = u32::from(udp.source()) << 16 | u32::from(udp.length());
            (u32::from(ECHO_PORT), second)
        }
        _ => return None,
    };
    Some(send(context, words, &ip, first, second))
}

/// Sends the frame back: addresses exchanged, `first` the halfword behind the IP header and
/// `second` the word behind that.
fn send(
    context: &Context,
    words: &[u32; 10],
    ip: &Ipv4<'_>,
    first: u32,
    second: u32,
) -> Result<(), Full> {
    context.patch(0, words[1] << 16 | words[2] >> 16)?;
    context.patch(1, words[2] << 16 | words[0] >> 16)?;
    context.patch(2, words[0] << 16 | words[1] >> 16)?;
    let (from, to) = (ip.source(), ip.destination());
    context.patch(6, words[6] & 0xFFFF_0000 | to >> 16)?;
    context.patch(7, to << 16 | from >> 16)?;
    context.patch(8, from << 16 | first)?;
    context.patch(9, second)?;
    context.transmit()?;
    // One count is always within the bound.
    context.count(ANSWERS)
}
