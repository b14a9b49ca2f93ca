//! Documents of a conversation, as files for people and for programs have them.

use std::borrow::Cow;

use crate::model::File;
use crate::provider::{Payload, decode_base64};
use crate::transfer::take::mime_of;

/// A document's text, if it is text and here.
pub(crate) fn text_of(file: &File) -> Option<String> {
    let held = Payload::of_file(file).ok()?;
    let labelled = Some(held.media_type).filter(|label| !label.is_empty());
    let mime_type = labelled.or_else(|| file.name.as_deref().map(mime_of))?;
    let is_text = mime_type.starts_with("text/") || mime_type == "application/json";
    String::from_utf8(decode_base64(&held.base64).filter(|_| is_text)?).ok()
}

/// Where a document is: its address, or a data URL of what is here.
pub(crate) fn place_of(file: &File) -> Option<Cow<'_, str>> {
    match (Payload::of_file(file), &file.data) {
        (Ok(held), _) => Some(held.to_url().into()),
        // What is no base64 is somebody's data all the same.
        (Err(_), Some(data)) => {
            let mime_type = file.mime_type.as_deref().unwrap_or("application/octet-stream");
            Some(format!("data:{mime_type};base64,{data}").into())
        }
        (Err(_), None) => file.url.as_deref().filter(|url| !url.is_empty()).map(Cow::Borrowed),
    }
}
