//! Where in a request the lines of a report belong.

use crate::history::ReportLine;
use crate::provider::read::parsed::Place;

/// Adds the places to the lines that name a message: paths into the request that the messages were read from.
pub(super) fn place(lines: &mut [ReportLine], places: &[Place]) {
    let position = |index: u64| usize::try_from(index).ok();
    for line in lines.iter_mut().filter(|line| line.place.is_none()) {
        let Some(place) = line.message_index.and_then(position).and_then(|message| places.get(message)) else {
            continue;
        };
        let chunk = line.chunk_index.map(u64::from).and_then(position).and_then(|chunk| place.chunks.get(chunk));
        line.place = Some(chunk.unwrap_or(&place.whole).clone());
    }
}
