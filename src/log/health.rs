//! How a store is: what keeps it from being written, and what was lost.

use std::path::PathBuf;

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Deserializer, Serialize};

/// What opening a store found, and what happened since. All of it is absent from a store that is well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Health {
    /// Acknowledged data is missing: the newest commit that is there, and the newest that was acknowledged. The store can
    /// be read. As JSON: `from` and `to`.
    #[serde(serialize_with = "from_to", deserialize_with = "two", skip_serializing_if = "Option::is_none")]
    pub went_back: Option<(u64, u64)>,
    /// The file `watermark` is damaged or missing: nobody can know whether acknowledged data is missing. The store can be
    /// read.
    pub watermark_lost: bool,
    /// What else of the store as a whole is damaged. If acknowledged data may be missing, the store can only be read.
    pub damage: Vec<String>,
    /// The disk was full when the store was opened. It can be read; to write, make room and open it again.
    pub disk_full: bool,
    /// Damage kept the store from opening as it was: a copy of it is here, and the next opening that may write compares
    /// everything that can be derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<PathBuf>,
    /// The write that failed, after which none is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poisoned: Option<String>,
    /// The store was closed.
    pub closed: bool,
    /// What of the database's settings does not go with the promise that nothing acknowledged is lost. The store can be
    /// written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn from_to<S: Serializer>(went_back: &Option<(u64, u64)>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    if let Some((from, to)) = went_back {
        map.serialize_entry("from", from)?;
        map.serialize_entry("to", to)?;
    }
    map.end()
}

fn two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(u64, u64)>, D::Error> {
    #[derive(Deserialize)]
    struct Two {
        from: u64,
        to: u64,
    }
    Ok(Option::<Two>::deserialize(deserializer)?.map(|Two { from, to }| (from, to)))
}
