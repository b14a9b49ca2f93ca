//! What the files of a search index hold.

use std::path::Path;

use tantivy::{Index, Term};

/// Whether any file of an index may have a word: a segment knows it, or a file is of no segment.
pub(crate) fn holds(directory: &Path, word: &str) -> bool {
    let index = Index::open_in_dir(directory).unwrap();
    let term = Term::from_field_text(index.schema().get_field("text").unwrap(), word);
    let searcher = index.reader().unwrap().searcher();
    let knows = |segment: &tantivy::SegmentReader| {
        segment.inverted_index(term.field()).unwrap().get_term_info(&term).unwrap().is_some()
    };
    let segments = index.searchable_segment_ids().unwrap();
    let is_stray = |name: &str| {
        let of_segment = name.split_once('.').is_some_and(|(id, _)| id.len() == 32);
        of_segment && !segments.iter().any(|segment| name.starts_with(&segment.uuid_string()))
    };
    let mut files = std::fs::read_dir(directory).unwrap();
    searcher.segment_readers().iter().any(knows)
        || files.any(|file| is_stray(file.unwrap().file_name().to_str().unwrap()))
}
