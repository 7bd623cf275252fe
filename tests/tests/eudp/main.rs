//! Endpoints for datagrams: E-UDP, on the simulator with the real firmware.

mod arriving;
mod burst;
mod card;
mod example;
mod explore;
mod faults;
mod files;
mod first;
mod flowing;
mod fragments;
mod in_line;
mod inline;
mod link;
mod linux;
mod margin;
mod page;
mod pair;
mod paired;
mod predicting;
mod queued;
mod queues;
mod receiving;
mod rows;
mod sending;
mod streams;
mod vlan;
