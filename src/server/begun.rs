//! Responses that have begun: those that are in memory alone, and which request began which.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::error::Result;
use crate::log::locked;
use crate::model::ConversationId;
use crate::store::Store;

/// How many requests are known, for those that repeat one.
const RECENT: usize = 1_024;

/// For how long a request may be repeated: SDKs give up after 10 minutes.
const REPEATED: Duration = Duration::from_secs(600);

/// What all responses of a server share.
#[derive(Debug)]
pub(crate) struct BegunResponses {
    /// Those that are not stored, for as long as somebody follows them.
    pub(crate) passing: Store,
    recent: Arc<Mutex<Recent>>,
}

/// The requests that came last, in their order.
#[derive(Debug, Default)]
struct Recent {
    requests: VecDeque<Request>,
    came: u64,
}

/// A request that came.
#[derive(Debug)]
struct Request {
    digest: [u8; 16],
    number: u64,
    came: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It has no answer yet. Who repeats it learns here that this has changed.
    Asking(watch::Receiver<()>),
    /// It has ended without an answer.
    Refused,
    /// A conversation, and the message's index.
    Begun(ConversationId, u64),
}

/// What a request is to those before it.
pub(crate) enum Came {
    /// It begins a response.
    First(Asking),
    /// It repeats one that has no answer yet: once that has changed, the question is to be asked again.
    Waits(watch::Receiver<()>),
    /// It repeats the one that has begun this answer.
    Follows(ConversationId, u64),
}

/// A request that has no answer yet. Dropped, it has ended without one.
#[derive(Debug)]
pub(crate) struct Asking {
    recent: Arc<Mutex<Recent>>,
    number: u64,
    /// Its end wakes who waits.
    _changed: watch::Sender<()>,
}

impl BegunResponses {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { passing: Store::open("memory:")?, recent: Arc::default() })
    }

    /// Notes a request of this digest. A repetition takes the place of a request that was refused, if there is one. Else it
    /// follows the last one.
    pub(crate) fn came(&self, digest: [u8; 16], may_repeat: bool) -> Came {
        let mut recent = locked(&self.recent);
        if may_repeat {
            let is_it = |known: &Request| known.digest == digest && known.came.elapsed() < REPEATED;
            let refused = |known: &Request| is_it(known) && matches!(known.state, State::Refused);
            if let Some(at) = recent.requests.iter().position(refused) {
                recent.requests.remove(at);
            } else if let Some(last) = recent.requests.iter().rev().find(|known| is_it(known)) {
                match &last.state {
                    State::Asking(changed) => return Came::Waits(changed.clone()),
                    State::Begun(conversation, message) => return Came::Follows(*conversation, *message),
                    State::Refused => {}
                }
            }
        }
        let (sender, changed) = watch::channel(());
        recent.came += 1;
        let number = recent.came;
        if recent.requests.len() == RECENT {
            recent.requests.pop_front();
        }
        recent.requests.push_back(Request { digest, number, came: Instant::now(), state: State::Asking(changed) });
        Came::First(Asking { recent: Arc::clone(&self.recent), number, _changed: sender })
    }
}

impl Asking {
    /// Its answer has begun.
    pub(crate) fn begun(self, conversation: ConversationId, message: u64) {
        self.becomes(State::Begun(conversation, message));
    }

    /// Its answer is not to be found again: nobody waits for it.
    pub(crate) fn forget(self) {
        locked(&self.recent).requests.retain(|known| known.number != self.number);
    }

    fn becomes(&self, state: State) {
        let mut recent = locked(&self.recent);
        if let Some(known) = recent.requests.iter_mut().find(|known| known.number == self.number) {
            *known = Request { came: Instant::now(), state, ..*known };
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut recent = locked(&self.recent);
        let is_asking = |known: &&mut Request| known.number == self.number && matches!(known.state, State::Asking(_));
        if let Some(known) = recent.requests.iter_mut().find(is_asking) {
            known.state = State::Refused;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(begun: &BegunResponses, may_repeat: bool) -> Asking {
        match begun.came([1; 16], may_repeat) {
            Came::First(asking) => asking,
            Came::Waits(_) => panic!("it waits"),
            Came::Follows(..) => panic!("it follows"),
        }
    }

    fn answer(begun: &BegunResponses) -> Option<u64> {
        match begun.came([1; 16], true) {
            Came::Follows(_, message) => Some(message),
            Came::First(_) | Came::Waits(_) => None,
        }
    }

    #[test]
    fn a_repetition_follows_the_last_request_or_takes_the_place_of_a_refused_one() {
        let begun = BegunResponses::new().unwrap();
        let conversation = ConversationId::new();
        // The same said twice is no repetition.
        let (one, two) = (first(&begun, false), first(&begun, false));
        one.begun(conversation, 1);
        let Came::Waits(changed) = begun.came([1; 16], true) else { panic!("the last one has no answer yet") };
        assert!(changed.has_changed().is_ok());
        two.begun(conversation, 2);
        assert!(changed.has_changed().is_err(), "who waits is woken");
        assert_eq!(answer(&begun), Some(2));
        drop(first(&begun, false));
        // One of them was refused: this is its repetition.
        first(&begun, true).begun(conversation, 3);
        assert_eq!(answer(&begun), Some(3));
        let three = first(&begun, false);
        three.forget();
        assert_eq!(answer(&begun), Some(3), "what is not stored is followed by nobody");
        assert!(matches!(begun.came([2; 16], true), Came::First(_)));
    }
}
