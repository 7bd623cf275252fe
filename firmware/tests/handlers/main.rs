//! Tests the firmware's handlers, run natively against the hardware model.

mod bad_frames;
mod boot;
mod chaos;
mod command;
mod config;
mod docs;
mod fatal;
mod fault;
mod link;
mod loadable;
mod machine;
mod multicast;
mod nic;
mod packet;
mod queues;
mod receive;
mod receive_offload;
mod receive_rings;
mod return_index;
mod rings;
mod send;
mod send_offload;
mod send_ring;
mod statistics;
mod trace;
