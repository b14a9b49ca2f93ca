//! The name of a format, as somebody writes it.

use conversation_store::transfer::{FORMATS, Format};

use super::failure::Failure;

/// The most edits between a name and what was meant.
const EDITS: usize = 2;
/// Other names of formats.
const ALIASES: &[(&str, &str)] = &[("md", "markdown"), ("htm", "html"), ("legacy-rows", "rows")];

/// What is done with a format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Import,
    Export,
}

/// The format of this name, or what may have been meant.
pub(super) fn named(name: &str, way: Way) -> Result<&'static str, Failure> {
    let lower = name.to_lowercase().replace(['_', ' '], "-");
    let meant = ALIASES.iter().find(|(alias, _)| *alias == lower).map_or(lower.as_str(), |(_, meant)| meant);
    let goes = |format: &&Format| if way == Way::Import { format.is_read() } else { format.is_written() };
    let (verb, other) = if way == Way::Import { ("import", "export") } else { ("export", "import") };
    let known = FORMATS.iter().find(|format| format.name == meant);
    if let Some(format) = known.filter(goes) {
        return Ok(format.name);
    }
    let names: Vec<&str> = FORMATS.iter().filter(goes).map(|format| format.name).collect();
    let list = format!("the formats are {}", names.join(", "));
    if known.is_some() {
        let problem = format!("`{meant}` is no {verb} format: `convo {other}` has it");
        return Err(Failure::usage(problem).with_cure(list));
    }
    // A part of the name, or a slip of the pen.
    let is_near =
        |known: &&&str| known.split('-').any(|word| word == meant) || strsim::osa_distance(known, meant) <= EDITS;
    let near: Vec<String> = names.iter().filter(is_near).map(|name| format!("`{name}`")).collect();
    let near = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
    Err(Failure::usage(format!("there is no {verb} format `{name}`{near}")).with_cure(list))
}
