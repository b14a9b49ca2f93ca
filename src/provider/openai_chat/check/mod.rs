//! Is a chat request accepted? `request` judges it as a whole, and asks the others.

mod message;
pub(crate) mod request;
pub(crate) mod sequence;
