//! More documents than a request may hold: the oldest give way to words (BC-21).

use std::borrow::Cow;

use super::request::{Block, Message};
use crate::history::ReportLine;
use crate::history::report::{Fact, Unfit};
use crate::provider::bedrock_converse::check::message::DOCUMENTS;
use crate::provider::prompt::turns::Origin;

/// The oldest documents leave this many at a time, so that a prompt that goes on keeps its beginning for a while.
const STEP: usize = DOCUMENTS / 2;

pub(crate) fn keep_to_limits(messages: &mut [Message<'_>], report: &mut Vec<ReportLine>) {
    let mut documents = Vec::new();
    messages.iter_mut().for_each(|message| collect(&mut message.content, &mut documents));
    let over = documents.len().saturating_sub(DOCUMENTS).div_ceil(STEP) * STEP;
    for (Origin { stored, chunk }, block) in documents.into_iter().take(over) {
        let why = Unfit::Many(DOCUMENTS, "documents");
        report.push(ReportLine::chunk(Fact::AttachmentRemoved { what: "document", why: &why }, stored, chunk));
        *block = Block::Text(Cow::Owned(format!("[document left out: {why}]")));
    }
}

fn collect<'b, 'a>(blocks: &'b mut [Block<'a>], documents: &mut Vec<(Origin<'a>, &'b mut Block<'a>)>) {
    for block in blocks {
        match (block.document(), block) {
            (Some(origin), block) => documents.push((origin, block)),
            (None, Block::ToolResult(result)) => collect(&mut result.content, documents),
            _ => {}
        }
    }
}
