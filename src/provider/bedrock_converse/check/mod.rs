//! Is a Converse request accepted? `request` judges it as a whole, and asks the others.

pub(crate) mod message;
pub(crate) mod request;
mod sequence;
