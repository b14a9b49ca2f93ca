//! More images than a request may hold: the oldest give way to words.

use std::borrow::Cow;

use super::request::{Block, Content, Message, OwnKind};
use crate::history::ReportLine;
use crate::history::report::{Fact, Unfit};
use crate::provider::prompt::turns::Origin;

/// Images in a request (AN-31).
const IMAGES: usize = 100;
/// The oldest images leave this many at a time, so that a prompt that goes on keeps its beginning for a while.
const STEP: usize = IMAGES / 2;
/// With more images than this, none may have a longer side than [`SIDE`] (AN-32).
const MANY: usize = 20;
const SIDE: u32 = 2000;

pub(crate) fn keep_to_limits(messages: &mut [Message<'_>], report: &mut Vec<ReportLine>) {
    let mut images = Vec::new();
    for message in messages {
        collect(&mut message.content, &mut images);
    }
    let over = images.len().saturating_sub(IMAGES).div_ceil(STEP) * STEP;
    let kept = images.split_off(over.min(images.len()));
    for image in images {
        leave_out(image, &Unfit::Many(IMAGES, "images"), report);
    }
    if kept.len() > MANY {
        for image in kept {
            if let Some(side) = side(image).filter(|side| *side > SIDE) {
                leave_out(image, &Unfit::WideAmong(side, SIDE, MANY), report);
            }
        }
    }
}

fn collect<'b, 'a>(blocks: &'b mut [Block<'a>], images: &mut Vec<&'b mut Block<'a>>) {
    for block in blocks {
        match block {
            Block::Image { .. } => images.push(block),
            Block::Own(own) if own.kind == OwnKind::Image => images.push(block),
            Block::ToolResult { content: Some(Content::Blocks(blocks)), .. } => collect(blocks, images),
            _ => {}
        }
    }
}

fn side(image: &Block<'_>) -> Option<u32> {
    if let Block::Image { side, .. } = image { *side } else { None }
}

fn leave_out(image: &mut Block<'_>, why: &Unfit, report: &mut Vec<ReportLine>) {
    let origin = match image {
        Block::Image { origin, .. } => Some(*origin),
        Block::Own(own) => own.origin,
        _ => None,
    };
    if let Some(Origin { stored, chunk }) = origin {
        report.push(ReportLine::chunk(Fact::AttachmentRemoved { what: "image", why }, stored, chunk));
    }
    *image = Block::Text { text: Cow::Owned(format!("[image left out: {why}]")) };
}
