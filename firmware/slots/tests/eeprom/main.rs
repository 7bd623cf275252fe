//! The boot slots on an EEPROM in memory: damage of any bit, and power that fails at any
//! write.

mod damage;
mod part;
mod power;
