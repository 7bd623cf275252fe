//! The vfio-user protocol: messages, a robust server and a client with posted writes.
