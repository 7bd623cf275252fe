//! Tests the boot slots on an EEPROM in memory: damage of any bit, power failure at any write, and
//! older images.

mod damage;
mod part;
mod power;
mod rollback;
