//! The recording proxy: what clients send to a provider passes through here as it is, and is recorded beside the traffic.
//!
//! - `exchange`: what passes of one call, as the side that passes it on tells it to the side that records it.
//! - `record`: what is stored of it, and where.

mod exchange;
mod record;
