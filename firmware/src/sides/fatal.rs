//! Fatal errors of CPU A: publish the counts, then stop.

use super::{SideA, eudp, statistics};
use crate::control::link;
use crate::record::fatal;
use crate::record::log::log_error;
use host_interface::extension::FatalCode;
use tigon2_hal::events::Dispatch;

/// Reports a fatal error and stops the firmware. Nothing runs after it on the chip.
#[inline(never)]
pub fn report<B: Dispatch>(a: &mut SideA<B>, code: FatalCode, argument: u32) {
    log_error!(
        "fatal: code {=u32}, argument {=u32:#x}",
        code as u32,
        argument
    );
    statistics::publish_a(a);
    fatal::stop(&mut a.io.bus, code, argument);
}

/// MAC RX attention; a fatal one stops the firmware.
pub fn receive_attention<B: Dispatch>(a: &mut SideA<B>) {
    if let Err(link::MacStopped(state)) = link::receive_attention(&mut a.io) {
        report(a, FatalCode::Mac, state);
    }
    eudp::arrival::given_up(&mut a.eudp, &mut a.io);
}
