//! Extensions in the running card: SPINE, on the simulator with the real firmware.

mod answers;
mod card;
mod closed;
mod commands;
mod cost;
mod cuts;
mod exchange;
mod expected;
mod fuzz;
mod housekeeping;
mod kept;
mod leased;
mod messages;
mod pad;
mod page;
mod peers;
mod reserved;
mod rings;
mod routes;
mod schedules;
mod screen;
mod tigonctl;
mod traffic;
mod trials;
mod video;
mod watchdog;
