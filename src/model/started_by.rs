//! Which conversation started another: the link from a sub-agent's conversation to the call that started it.

use std::fmt;
use std::str::FromStr;

use super::ConversationId;

/// What started a conversation: another conversation, perhaps a message of it, perhaps a call in that.
///
/// It is kept as tags of the conversation that was started, one for each part, so that every store lists by each of them:
///
/// ```
/// use conversation_store::model::{ConversationId, Message, StartedBy};
/// use conversation_store::{ListQuery, Store};
///
/// let store = Store::open("memory:")?;
/// store.append("chat", &[Message::user("Look into it.")])?;
/// let parent = store.describe("chat")?.id;
/// let link = StartedBy { conversation: parent, message: Some(1), call: Some("call_1".to_owned()) };
/// store.append("helper", &[Message::user("Read all files.")])?;
/// store.set_started_by("helper", &link)?;
///
/// let all = StartedBy::from(parent).to_string();
/// let started = store.list(&ListQuery::new().with_tag(all))?;
/// assert_eq!(started.items[0].started_by(), Some(link));
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedBy {
    /// The conversation that started it.
    pub conversation: ConversationId,
    /// The index of the message in it.
    pub message: Option<u64>,
    /// The id of the call in the message.
    pub call: Option<String>,
}

/// What such a tag begins with.
const TAG: &str = "started-by:";

impl StartedBy {
    /// The tags of a conversation that was started so: `started-by:ID`, `started-by:ID/MESSAGE`, `started-by:ID/MESSAGE/CALL`.
    /// A call without its message is left out.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        let conversation = Self::from(self.conversation);
        let message = Self { message: self.message, ..conversation.clone() };
        let mut tags: Vec<String> = [&conversation, &message, self].map(ToString::to_string).to_vec();
        tags.dedup();
        tags
    }

    /// What started the conversation that has these tags: the first of the tags that say most.
    #[must_use]
    pub fn of(tags: &[String]) -> Option<Self> {
        let links = tags.iter().filter_map(|tag| tag.parse::<Self>().ok());
        let detail = |link: &Self| (link.message.is_some(), link.call.is_some());
        links.reduce(|best, link| if detail(&link) > detail(&best) { link } else { best })
    }
}

impl From<ConversationId> for StartedBy {
    fn from(conversation: ConversationId) -> Self {
        Self { conversation, message: None, call: None }
    }
}

/// The tag that says all of it.
impl fmt::Display for StartedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{TAG}{}", self.conversation)?;
        if let Some(message) = self.message {
            write!(f, "/{message}")?;
            if let Some(call) = &self.call {
                write!(f, "/{call}")?;
            }
        }
        Ok(())
    }
}

/// A tag that is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a link is `started-by:ID`, and may go on with `/MESSAGE` and `/CALL`")]
pub struct NoLink;

impl FromStr for StartedBy {
    type Err = NoLink;

    fn from_str(tag: &str) -> Result<Self, NoLink> {
        let mut parts = tag.strip_prefix(TAG).ok_or(NoLink)?.splitn(3, '/');
        let conversation = parts.next().and_then(|id| id.parse().ok()).ok_or(NoLink)?;
        let message = parts.next().map(str::parse::<u64>).transpose().map_err(|_| NoLink)?;
        let call = parts.next().map(str::to_owned);
        Ok(Self { conversation, message, call })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_tags_and_back() {
        let id = ConversationId::from_bytes([7; 16]);
        let link = |message, call: Option<&str>| StartedBy { conversation: id, message, call: call.map(str::to_owned) };
        for (link, count) in [(link(None, None), 1), (link(Some(0), None), 2), (link(Some(3), Some("a/b c")), 3)] {
            let tags = link.tags();
            assert_eq!(tags.len(), count, "{tags:?}");
            let mixed = [&["work".to_owned()], &*tags].concat();
            assert_eq!(StartedBy::of(&mixed), Some(link.clone()));
            assert_eq!(tags.last().unwrap().parse(), Ok(link));
        }
        assert_eq!(StartedBy::of(&["work".to_owned(), "started-by:x".to_owned(), format!("{TAG}{id}/x")]), None);
        assert_eq!(StartedBy::of(&[]), None);
    }
}
