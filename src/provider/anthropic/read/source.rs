//! Images and documents. One that is stored with the provider, or says more than where it is, stays the provider's block.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::{File, Image};
use crate::provider::read::fields::Fields;

pub(crate) fn image(fields: &mut Fields<'_>) -> Option<Image> {
    let mut source = Fields::of(fields.peek("source")?)?;
    let url = match source.string("type")?.as_str() {
        "base64" => format!("data:{};base64,{}", source.string("media_type")?, source.string("data")?),
        "url" => source.string("url")?,
        _ => return None,
    };
    if source.rest().next().is_some() {
        return None;
    }
    fields.take("source");
    Some(Image { url, mime_type: None })
}

pub(crate) fn file(fields: &mut Fields<'_>) -> Option<File> {
    if ["context", "citations"].iter().any(|name| fields.peek(name).is_some()) {
        return None;
    }
    let mut source = Fields::of(fields.peek("source")?)?;
    let file = match source.string("type")?.as_str() {
        "base64" => {
            File { data: Some(source.string("data")?), mime_type: source.string("media_type"), ..File::default() }
        }
        "text" => {
            let data = Some(STANDARD.encode(source.string("data")?));
            File { data, mime_type: source.string("media_type"), ..File::default() }
        }
        "url" => {
            let (url, mime_type) = (Some(source.string("url")?), Some("application/pdf".to_owned()));
            File { url, mime_type, ..File::default() }
        }
        _ => return None,
    };
    if source.rest().next().is_some() {
        return None;
    }
    fields.take("source");
    Some(File { name: fields.string("title"), ..file })
}
