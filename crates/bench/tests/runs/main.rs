//! Runs as the command line has them, on stores whose behaviour is known.
#![allow(clippy::unwrap_used)]

mod commands;
mod drivers;
mod record;
