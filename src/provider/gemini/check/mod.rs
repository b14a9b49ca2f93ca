//! Is a generateContent request accepted? `request` judges it as a whole, and asks the others.

pub(crate) mod content;
pub(crate) mod request;
pub(crate) mod sequence;
