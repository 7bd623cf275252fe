//! The Tigon II card as the engines emulate it, sans-IO.
