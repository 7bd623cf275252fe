//! The names of a card's interrupts.

use std::fmt;

use super::TransportError;

/// One of a card's interrupts. A waiter names the one that it waits for.
///
/// The chip has a single line, the pin INTA ([`Vector::INTERRUPT`]): the card drives it while
/// bit 0 of `R[40]` is set and no driver has masked it by mailbox 0 (Hardware reference,
/// section 9). A board with messages would have one vector for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Vector(u16);

impl Vector {
    /// The pin INTA.
    pub const INTERRUPT: Self = Self(0);

    /// The vector of a number; 0 is the pin.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// For transports of cards that have the pin alone.
    ///
    /// # Errors
    /// [`TransportError::NoVector`] for every other vector.
    pub const fn must_be_pin(self) -> Result<(), TransportError> {
        match self {
            Self::INTERRUPT => Ok(()),
            other => Err(TransportError::NoVector(other)),
        }
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::INTERRUPT => f.write_str("INTA"),
            Self(number) => write!(f, "{number}"),
        }
    }
}
