//! The log against a plain model, and what can only be seen from inside.

mod accepted;
mod disk;
mod durable;
mod fixture;
mod forgetful;
mod forgotten;
mod items;
mod lost;
mod meanwhile;
mod model;
mod problems;
mod properties;
mod schedules;
