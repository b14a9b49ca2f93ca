//! Is a chat request accepted? `request` judges it as a whole, and asks the others.

pub(crate) mod calls;
pub(crate) mod content;
pub(crate) mod message;
pub(crate) mod reasoning;
pub(crate) mod request;
pub(crate) mod sequence;
