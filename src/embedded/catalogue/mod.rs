//! Which conversations there are: their heads, their places in the list, what readers see of them.

pub(crate) mod deferred;
pub(crate) mod follow;
pub(crate) mod indexes;
pub(crate) mod list;
pub(crate) mod moves;
