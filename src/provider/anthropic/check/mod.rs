//! Is a Messages request accepted? `request` judges it as a whole, and asks the others.

pub(crate) mod block;
pub(crate) mod cache;
pub(crate) mod image;
pub(crate) mod message;
pub(crate) mod request;
pub(crate) mod sequence;
pub(crate) mod thinking;
pub(crate) mod tools;
pub(crate) mod turns;
