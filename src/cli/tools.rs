//! A file of tools, in the form of any wire.

use std::path::Path;

use conversation_store::provider::Tool;

use super::failure::Failure;
use super::lines::Input;

/// Reads an array of tools.
pub(super) fn read(path: &Path) -> Result<Vec<Tool>, Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let text = input.read_text()?;
    Tool::from_json(&text).map_err(|error| Failure::from(error).at(&name))
}
