//! Is a Responses request accepted? `request` judges it as a whole, and asks the others.

pub(crate) mod item;
pub(crate) mod request;
mod sequence;
