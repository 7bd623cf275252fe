//! Properties of the running card: QEMU's `qom-get` and `qom-set`.
//!
//! | property | get | set |
//! | --- | --- | --- |
//! | `link` | `down`, `up`, or with a PHY `up 100 full` | |
//! | `partner` | the link partner, in words | another one |
//! | `inject` | | a fault of the wire: `receive crc 2`, `transmit late-collision`, `none` |
//! | `undefined` | number of undefined accesses | |
//! | `counts` | counts of errors and delays, see [`crate::counts`] and [`crate::stalls`] | |

use crate::host::Host;
use crate::machine::Machine;
use thiserror::Error;
use tigon2_model::{FaultError, PartnerError};

/// A property cannot be had.
#[derive(Debug, Error)]
pub enum PropertyError {
    /// There is none of this name, or it cannot be read or written.
    #[error("the card has no property {name:?} to {verb}")]
    Unknown {
        /// The name.
        name: String,
        /// What was tried.
        verb: &'static str,
    },
    /// No partner is described like this.
    #[error(transparent)]
    Partner(#[from] PartnerError),
    /// No fault is described like this.
    #[error(transparent)]
    Fault(#[from] FaultError),
}

/// Reads a property.
///
/// # Errors
/// [`PropertyError`] if there is none to read.
pub fn get<H: Host>(machine: &Machine<H>, name: &str) -> Result<String, PropertyError> {
    match name {
        "link" => Ok(machine.link()),
        "partner" => Ok(machine.partner().to_string()),
        "undefined" => Ok(machine.undefined().to_string()),
        "counts" => Ok(machine.all_counts()),
        _ => Err(unknown(name, "get")),
    }
}

/// Writes a property.
///
/// # Errors
/// [`PropertyError`] if there is none to write, or if the value means nothing.
pub fn set<H: Host>(machine: &Machine<H>, name: &str, value: &str) -> Result<(), PropertyError> {
    match name {
        "partner" => machine.set_partner(value.parse()?),
        "inject" => machine.inject(value.parse()?),
        _ => return Err(unknown(name, "set")),
    }
    Ok(())
}

fn unknown(name: &str, verb: &'static str) -> PropertyError {
    PropertyError::Unknown {
        name: name.to_owned(),
        verb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Client;
    use crate::testing::Notes;
    use tigon2_chip::Register;
    use tigon2_model::{Board, Card, Cpu};

    fn machine(board: Board) -> Machine<Notes> {
        let machine = Machine::new(Notes::new(&board), Card::new(board), Client::default());
        machine.power_on();
        machine
    }

    #[test]
    fn the_partner_changes_while_the_card_runs() {
        let machine = machine(Board::copper());
        machine.cpu_write(Cpu::A, Register::MiscConfig.offset(), 0x0710_0055);
        assert_eq!(get(&machine, "link").ok().as_deref(), Some("down"));
        set(&machine, "partner", "100-full 10-half pause").expect("a partner");
        assert_eq!(
            get(&machine, "partner").ok().as_deref(),
            Some("100-full 10-half pause")
        );
        machine.host().pass(10_000_000);
        assert_eq!(get(&machine, "link").ok().as_deref(), Some("up 100 full"));
        let error = set(&machine, "partner", "100").unwrap_err().to_string();
        assert!(error.contains("\"100\""), "{error}");
    }

    #[test]
    fn fibre_is_up_or_down() {
        let machine = machine(Board::default());
        assert_eq!(get(&machine, "link").ok().as_deref(), Some("down"));
        machine.cpu_write(Cpu::A, Register::MacTxState.offset(), 0xE2);
        assert_eq!(get(&machine, "link").ok().as_deref(), Some("up"));
        machine.set_cable(false);
        assert_eq!(get(&machine, "link").ok().as_deref(), Some("down"));
    }

    #[test]
    fn faults_are_injected_and_nonsense_is_refused() {
        let machine = machine(Board::default());
        assert!(set(&machine, "inject", "receive crc 2").is_ok());
        assert!(set(&machine, "inject", "receive crc two").is_err());
        assert_eq!(get(&machine, "undefined").ok().as_deref(), Some("0"));
        for name in ["", "link", "undefined", "inject2"] {
            let error = set(&machine, name, "").unwrap_err().to_string();
            assert!(error.contains("to set"), "{error}");
        }
        let error = get(&machine, "inject").unwrap_err().to_string();
        assert!(error.contains("to get"), "{error}");
    }
}
