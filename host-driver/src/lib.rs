//! Linux userspace driver for the Tigon II.
