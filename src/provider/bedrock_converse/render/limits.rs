//! More documents than a request may hold: the oldest give way to words (BC-21).

use std::borrow::Cow;

use super::request::{Block, Message, Origin};
use crate::history::{ReportLine, Rule};
use crate::provider::bedrock_converse::check::request::DOCUMENTS;

/// The oldest documents leave this many at a time, so that a prompt that goes on keeps its beginning for a while.
const STEP: usize = DOCUMENTS / 2;

pub(crate) fn keep_to_limits(messages: &mut [Message<'_>], report: &mut Vec<ReportLine>) {
    let blocks = messages.iter_mut().flat_map(|message| &mut message.content);
    let documents: Vec<(Origin<'_>, &mut Block<'_>)> =
        blocks.filter_map(|block| Some((block.document()?, block))).collect();
    let over = documents.len().saturating_sub(DOCUMENTS).div_ceil(STEP) * STEP;
    for (Origin { stored, chunk }, block) in documents.into_iter().take(over) {
        let why = format!("the target takes {DOCUMENTS} documents");
        report.push(ReportLine::chunk(Rule::LeftOut, stored, chunk, format!("the document was left out: {why}")));
        *block = Block::Text(Cow::Owned(format!("[document left out: {why}]")));
    }
}
