//! What was sent for an answer, byte for byte.

use askama::Template;
use uuid::Uuid;

use super::frame::{Frame, address_for, other_owner, page};
use super::words::{Cut, grouped};
use crate::error::Error;
use crate::server::app::{Call, Outcome};
use crate::server::native::parameters;
use crate::server::proxy::request as as_sent;

/// Bytes of a request.
const TEXT: usize = 256 * 1024;

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "request.html")]
struct Page {
    frame: Frame,
    /// The address of all of it.
    whole: String,
    conversation: String,
    message: u64,
    upstream: String,
    path: String,
    bytes: String,
    /// The fields in which keys are replaced.
    replaced: Vec<String>,
    /// What a repair changed before it was sent.
    repaired: Vec<String>,
    text: Cut,
}

pub(super) fn request(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["whole", "owner"])?;
    let call = &parameters::for_owner(call)?;
    let exchange = call.part("exchange");
    let id = Uuid::try_parse(exchange).map_err(|_| Error::NotFound { what: format!("exchange {exchange}") })?;
    let sent = as_sent(call.store(), &call.room, &call.caller.owner, id)?;
    let most = if call.query.get("whole").is_some() { usize::MAX } else { TEXT };
    let shown = Page {
        frame: Frame::of(call),
        whole: address_for(&format!("/pages/exchanges/{id}/request"), [("whole", "1")], other_owner(call)),
        conversation: sent.conversation.to_string(),
        message: sent.message,
        upstream: sent.upstream,
        path: sent.path,
        bytes: grouped(sent.bytes.len()),
        replaced: sent.replaced,
        repaired: sent.repaired,
        text: Cut::new(&String::from_utf8_lossy(&sent.bytes), most),
    };
    page(200, &shown)
}
