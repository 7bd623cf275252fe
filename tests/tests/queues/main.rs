//! Tests a card that sorts frames into receive queues, driven by the host driver.

mod cost;
mod explore;
mod files;
mod host;
mod hosts;
mod knet;
mod modes;
mod settings;
mod sorting;
mod status;
mod threads;
mod tigonctl;
