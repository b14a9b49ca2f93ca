//! Is a Messages request accepted? `request` judges it as a whole, and asks the others.

pub(crate) mod message;
pub(crate) mod request;
pub(crate) mod seen;
pub(crate) mod sequence;
