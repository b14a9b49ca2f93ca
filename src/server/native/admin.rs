//! The whole store, for keys of the scope `admin`: its health, its verification, a copy of it.

use std::fs::File;
use std::io::Read as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc::{Receiver, channel};

use crate::error::Error;
use crate::log::BackupSummary;
use crate::server::app::{Call, Outcome, Streaming, ok, reply};
use crate::server::keys::{hex, random};
use crate::server::refusal::Refusal;

/// Bytes of a piece of a backup.
const PIECE: usize = 256 * 1024;
/// One is read, one waits, one is sent.
const PIECES: usize = 3;

pub(super) fn health(call: &Call, _: &[u8]) -> Outcome {
    ok(&call.store().health())
}

pub(super) fn verify(call: &Call, _: &[u8]) -> Outcome {
    ok(&call.store().verify(|_, _| ())?)
}

/// A backup, written beside other temporary files first: it is complete before its first byte is sent.
pub(super) fn backup(call: Call, _: Body) -> Streaming {
    Box::pin(async move {
        let app = Arc::clone(&call.app);
        let room = Arc::clone(&call.room);
        room.wait(PIECE * PIECES).await?;
        let (file, summary) = app.pool.run(move || written(&call)).await?;
        let (sender, receiver) = channel(1);
        tokio::task::spawn_blocking(move || {
            let (mut file, _room) = (file, room);
            loop {
                let mut piece = Vec::with_capacity(PIECE);
                let read = file.by_ref().take(PIECE as u64).read_to_end(&mut piece);
                let piece = match read {
                    Ok(0) => return,
                    Ok(_) => Ok(Bytes::from(piece)),
                    Err(error) => Err(error),
                };
                let is_over = piece.is_err();
                if sender.blocking_send(piece).is_err() || is_over {
                    return;
                }
            }
        });
        let mut reply = reply(200, "application/octet-stream", Body::new(Copied(receiver)));
        for (name, count) in
            [("x-backup-conversations", summary.conversations), ("x-backup-unreadable", summary.unreadable)]
        {
            reply.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from(count));
        }
        Ok(reply)
    })
}

/// A new backup, open, whose name is removed already: it takes no room once it is closed.
fn written(call: &Call) -> Result<(File, BackupSummary), Refusal> {
    let path = std::env::temp_dir().join(format!("convo-backup-{}", hex(&random::<12>()?)));
    let written = call.store().backup(&path, |_, _| ());
    let opened = written.and_then(|summary| {
        let file = File::open(&path).map_err(Error::io("read the backup"))?;
        Ok((file, summary))
    });
    // It may not exist, if it could not be written.
    let _ = std::fs::remove_file(&path);
    Ok(opened?)
}

/// The pieces of a file.
struct Copied(Receiver<std::io::Result<Bytes>>);

impl http_body::Body for Copied {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
