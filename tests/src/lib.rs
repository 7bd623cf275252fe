//! Stories over whole systems: firmware, engine, driver and wire.
