//! The firmware's handlers on a host, against the hardware model.

mod boot;
mod chaos;
mod command;
mod config;
mod docs;
mod machine;
mod receive;
mod send;
