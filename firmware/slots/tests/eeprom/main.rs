//! The boot slots on an EEPROM in memory: damage of any bit, power that fails at any write,
//! and older images.

mod damage;
mod part;
mod power;
mod rollback;
