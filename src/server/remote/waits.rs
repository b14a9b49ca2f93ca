//! A request that is answered once there is something new, or after a while.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::body::Body;

use super::framed::{answer, asked};
use super::naming::name;
use crate::error::Error;
use crate::log;
use crate::log::reading;
use crate::log::remote::call::{Named, Wait, Waited};
use crate::model::Name;
use crate::server::app::{App, Call, Streaming};
use crate::server::body;
use crate::server::refusal::Refusal;
use crate::store::number_follower;

/// The longest wait. A client asks again.
const LONGEST: Duration = Duration::from_secs(60);

/// A follower, as long as its request lasts.
struct Follower {
    app: Arc<App>,
    name: Name,
    number: u64,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.app.store.log().wake(&self.name, self.number);
    }
}

/// The conversation that is followed, if it is the caller's, and its last seq.
fn followed(call: &Call, of: &Named, incarnation: u64) -> Result<(Name, u64), Refusal> {
    let name = name(call, of)?;
    let view = reading::view(call.store().log(), &name)?;
    if view.head.incarnation != incarnation {
        return Err(Error::no_conversation(name).into());
    }
    Ok((name, view.last_seq()))
}

pub(super) fn wait(call: Call, body: Body) -> Streaming {
    Box::pin(async move {
        let held = body::read(&call.app, body, None, body::Bounds::of(&call.app)).await?;
        let (Wait { name: of, incarnation, seq, milliseconds }, _) = asked(&held.bytes)?;
        drop(held);
        let app = Arc::clone(&call.app);
        let _room = app.streams.begin(&call.caller.key)?;
        // Who waits is not asked for an owner: it is this that finds out whose conversation it is.
        let (name, last_seq) = app.pool.run(move || followed(&call, &of, incarnation)).await?;
        if last_seq > seq {
            return answer(&Waited { last_seq: Some(last_seq) }, &[]);
        }
        let follower = Follower { app: Arc::clone(&app), name: name.clone(), number: number_follower() };
        let stopped = AtomicBool::new(false);
        let wait = log::Wait { name: &name, incarnation, seq, timeout: Duration::ZERO, stopped: &stopped };
        let mut closing = app.closing.subscribe();
        let news = tokio::select! {
            biased;
            news = poll_fn(|context| app.store.log().poll_for(&wait, follower.number, context.waker())) => Some(news),
            _ = closing.wait_for(|is_closing| *is_closing) => None,
            () = tokio::time::sleep(Duration::from_millis(milliseconds).min(LONGEST)) => None,
        };
        drop(follower);
        let last_seq = match news {
            None => None,
            Some(news) => {
                news?;
                let (app, name) = (Arc::clone(&app), name.clone());
                let view = app.clone().pool.run(move || Ok(reading::view(app.store.log(), &name)?)).await?;
                Some(view.last_seq())
            }
        };
        answer(&Waited { last_seq }, &[])
    })
}
