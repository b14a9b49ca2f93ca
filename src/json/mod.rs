//! JSON as text: objects whose values keep their bytes, and what can be found in a text, or mended, without a parser.
//!
//! `fields` takes an object apart, `object` writes one piece by piece, or adds its fields to another one, and `ordered` gathers
//! fields from many. `text` has functions of a whole text, and separates its strings from the rest. Nothing here knows a
//! conversation. `model/extra.rs` says what happens to unknown fields.

pub(crate) mod fields;
pub(crate) mod object;
pub(crate) mod ordered;
pub(crate) mod text;

pub(crate) use text::{
    ESCAPE, begins_with_second_half, boundary, compact, depth, find_marked, first_half_at_end, has_line_break,
    has_words, is_deeper, is_object, mark_lone_surrogates, one_line, replace_lone_surrogates, size, value,
};
