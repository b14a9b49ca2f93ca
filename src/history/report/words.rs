//! The sentences of all facts.

use std::borrow::Cow;
use std::fmt;

use super::fact::{Fact, Rule};
use super::reasons::{
    Arguments, Cited, IdGone, Mended, Moved, Refusal, Surrogates, Taken, Thought, Unfit, Unsent, Unsigned,
};
use crate::model::Role;

/// What was done, why, and the cure.
#[derive(Debug)]
pub(super) struct Words<'a> {
    pub(super) detail: Cow<'a, str>,
    pub(super) why: Option<Cow<'a, str>>,
    pub(super) cure: Option<&'static str>,
}

const STATE_ORIGIN: &str = "give the message its provider and model";
const THINKING_AS_TEXT: &str = "`--thinking tagged` sends it as text";
const RECORD_RESULT: &str = "add the tool's result: a real one takes the place of this one";

impl<'a> Words<'a> {
    pub(super) fn of(fact: &Fact<'a>) -> Self {
        match fact {
            Fact::RecordDamaged { error } => because("what a record holds is missing", *error)
                .cured("restore a backup; `convo verify` shows what is damaged"),
            Fact::ErrorRemoved => because("error removed", "it is not part of the conversation"),
            Fact::MessageEmpty { role } => because(format!("{role} message removed"), "it is empty"),
            Fact::ResultMoved => {
                because("tool result moved directly after its call", "results follow their calls, in the same order")
            }
            Fact::ResultRepeated => {
                because("tool result removed", "its call has another result: the first real one is sent")
            }
            Fact::ResultShortened { bytes, most } => because(
                format!("tool result shortened: the first {most} of {bytes} bytes are sent"),
                "a result of this length at most, as asked for",
            ),
            Fact::OutputsJoined => {
                because("moved before the calls of its message", "nothing may come between calls and their outputs")
            }
            Fact::ResultUnpaired => because("tool result removed", "no matching tool call"),
            Fact::ResultMade { rule: Rule::NotRun, text } => because(
                format!("tool result added: {text:?}"),
                "the call was cut off, and has no result; this one was made up",
            ),
            Fact::ResultMade { text, .. } => {
                because(format!("tool result added: {text:?}"), "the call has no result; this one was made up")
                    .cured(RECORD_RESULT)
            }
            Fact::StillWritten => because("sent as far as it is stored", "the message is still being written"),

            Fact::TextEmpty => plain("empty text removed"),
            Fact::TextBlank => because("text removed", "it is white space only, which the target refuses"),
            Fact::EndTrimmed => {
                because("white space at the end of the text removed", "the target refuses it at the end of a prompt")
            }
            Fact::RefusalAsText => because("refusal sent as text", "the target has no refusals in this place"),
            Fact::AnnotationsRemoved(why) => because("citations removed; the text is sent", cited(*why)),
            Fact::CitedFilesRemoved => because(
                "file ids removed from the citations",
                "the target has them in answers, and refuses them in requests",
            ),
            Fact::SurrogatesReplaced(of) => {
                let of = match of {
                    Surrogates::Request => "the request",
                    #[cfg(feature = "server")]
                    Surrogates::Chunk => "the chunk, whose own text is kept as its `native`",
                    Surrogates::Block => "the original block",
                    Surrogates::Arguments => "the arguments",
                };
                because(format!("U+FFFD put in place of a lone surrogate in {of}"), "half a character is not text")
            }

            Fact::CallAsText { models, begin } => because(
                format!("text sent as it is, with a tool call in it as {models} write one: `{begin}`"),
                "it was not received as a call, so no tool was run; only calls are sent as calls",
            )
            .cured("let the server read this model's calls (a tool call parser), and ask again"),
            Fact::CallNotAssistants { role } => {
                because("tool call removed", format!("{role} messages cannot hold tool calls"))
            }
            Fact::CallUnended => {
                because("tool call removed", "the provider ran the tool itself, and its result is missing")
            }
            Fact::ItemAnswered { kind } => because(
                format!("output added for `{kind}`: the outcome is unknown"),
                "the call has no output; this one was made up",
            )
            .cured("add the output: a real one takes the place of this one"),
            Fact::CallClosed => because(
                "result added: the tool is unavailable",
                "the provider ran the tool itself and gave no result; this one was made up",
            ),
            Fact::CallSignatureRemoved(why) => because("the call's signature is not sent; the call is", unsigned(*why)),
            Fact::TextSignatureRemoved => {
                because("the text's signature is not sent; the text is", "this target's texts have no signature")
            }
            Fact::SignatureMade => because(
                "stand-in added for the call's signature",
                "the target wants a signature, and the call has none that it takes",
            ),
            Fact::CallFieldsRemoved(why) => {
                because("the provider's own fields of the call are not sent; the call is", unsent(why))
            }
            Fact::ArgumentsReplaced { why, now } => because(format!("arguments sent as {now}"), arguments(*why)),
            Fact::NameChanged { from, to } => {
                because(format!("tool name {from:?} sent as {to:?}"), "the target does not take the name")
                    .cured("declare the tool by a name of letters, digits, `_` and `-`")
            }
            Fact::DeclarationRenamed { from, to } => {
                because(format!("tool {from:?} declared as {to:?}"), "the target does not take the name")
                    .cured("declare the tool by a name of letters, digits, `_` and `-`")
            }
            Fact::ErrorFlagRemoved => {
                because("the error flag is not sent; the output is", "this target's results have no error flag")
            }
            Fact::FailureWorded { text } => {
                because(format!("text added to the result: {text:?}"), "the tool failed, and its result has no text")
            }
            Fact::OutputWorded { text } => because(
                format!("text added to the result: {text:?}"),
                "the target wants a text, and the result has none",
            ),
            Fact::PartAsJson { kind } => {
                because(format!("part of type {kind:?} sent as its JSON"), "the type is not known")
            }
            Fact::RoundAsText => {
                because("tool round sent as text in a user message", "the user spoke after it, as asked for")
            }
            Fact::RoundRemoved => because("tool round removed", "the user spoke after it, as asked for"),

            Fact::Rebuilt { what } => {
                because("rebuilt from its content", format!("the original {what} is not accepted here"))
            }
            Fact::Removed { kind, why: why @ Unsent::NotInRole(_, target) } => {
                because(format!("`{kind}` cannot be replayed to {target}; removed"), unsent(why))
            }
            Fact::Removed { kind, why } => because(format!("`{kind}` removed"), unsent(why)),
            Fact::ToldAsText { kind, provider } => because(
                format!("`{kind}` of {provider} sent as text"),
                format!("no other provider takes {provider}'s own items"),
            ),
            Fact::IdRemoved { kind, why } => because(
                format!("id of `{kind}` removed"),
                match why {
                    IdGone::Used => "another item has it (OR-06)",
                    IdGone::WithReasoning => "the reasoning that it refers to is not sent (OR-09)",
                },
            ),
            Fact::OriginAssumed => {
                because("sent as the target's own", "the message does not name the provider and model that made it")
                    .cured(STATE_ORIGIN)
            }

            Fact::KeptByServer => because(
                "reasoning sent by its id",
                "the answer has no more of it: the target takes it only if it stored the answer",
            )
            .cured("ask for reasoning.encrypted_content when responses are made, or `--thinking omit`"),

            Fact::ThinkingTagged { asked: true } => because("thinking sent as text in <think> tags", "as asked for"),
            Fact::ThinkingTagged { asked: false } => because(
                "thinking sent as text in <think> tags",
                "the target does not take it as thinking, and the message has nothing else",
            ),
            Fact::ThinkingRemoved { why, text } => {
                let words = because("thinking removed", thought(*why));
                match why {
                    Thought::Foreign | Thought::Encrypted | Thought::Unsigned | Thought::NotForModel
                        if !text.trim().is_empty() =>
                    {
                        words.cured(THINKING_AS_TEXT)
                    }
                    _ => words,
                }
            }

            Fact::AttachmentRemoved { what, why } => {
                because(format!("{what} removed; a line of text takes its place"), why.to_string())
            }
            Fact::AttachmentMended { what, how } => mended(what, how),
            Fact::ImageOmitted => {
                because("image removed; a line of text takes its place", "the model takes no images, as asked for")
            }
            Fact::TranscriptSent => {
                because("the audio's transcript sent in its place", "the target does not take the audio")
            }
            Fact::MediaMoved(Moved::Role(role)) => {
                because("attachment moved to the next user message", format!("{role} messages hold text only"))
            }
            Fact::MediaMoved(Moved::Result) => because(
                "attachment moved to the user message after the tool results",
                "tool results cannot hold it here",
            ),
            Fact::MediaMoved(Moved::Failure) => because(
                "attachment moved to the user message after the tool results",
                "a result that failed holds text only",
            ),
            Fact::DocumentRenamed { to } => {
                because(format!("document name sent as {to:?}"), "the target does not take the name, or another has it")
            }
            Fact::DocumentWorded { text } => {
                because(format!("text added: {text:?}"), "the target wants a text beside a document")
            }

            Fact::SaidByUser(Taken::ToolMessage) => {
                because("sent in a user message", "tool messages hold tool results only")
            }
            Fact::SaidByUser(Taken::LaterSystem) => {
                because("sent in a user message", "the target takes no system message in this place")
            }
            Fact::TurnAdded { role: Role::User, text } => {
                because(format!("user message added: {text:?}"), "the first message must be the user's")
            }
            Fact::TurnAdded { role, text } => because(
                format!("{role} message added: {text:?}"),
                format!("the {role} must speak between tool results and the user"),
            ),
            Fact::BridgeAdded { text } => {
                because(format!("user message added: {text:?}"), "the last message must be the user's")
            }
            Fact::NotContinued => because(
                "the last answer is not continued, but asked for",
                "the target, or this model of it, does not go on with the assistant's words",
            )
            .cured("name a model that does with `--model`, or another target"),
            Fact::Summarized { seq } => because(
                "summary sent in place of the messages up to this one",
                format!("the conversation was summarized (seq {seq})"),
            ),
            Fact::CallSummarized => because("tool result not sent by itself", "its call is covered by the summary"),
            Fact::OutsideWindow { from, to } => because(
                format!("messages {from} to {to} removed"),
                "the window that was asked for begins at this message",
            ),
            Fact::ResultOutsideWindow => {
                because("tool result removed", "its call is before the window that was asked for")
            }
            Fact::WindowExceeded { held, limit, unit } => because(
                format!("the prompt has {held} {unit}, more than the {limit} asked for"),
                "the last turn, which begins at this message, is kept whole",
            ),

            Fact::ContentAsText => {
                because("content read as the text of its JSON", "it is neither a string nor an array")
            }
            Fact::ArgumentsAsText => because("arguments read as the text of their JSON", "they are not a string"),
            Fact::SystemAsText => because("`systemInstruction` read as text", "it is not an object"),
            Fact::StringAsMessage { what } => {
                because("read as a user message", format!("a string is in the place of a {what}"))
            }
            Fact::JsonAsMessage { what } => {
                because("read as an item of its own; `null` as nothing", format!("it is not a {what}, but other JSON"))
            }
            Fact::ToolMessageAsOutput => because("read as the output of a call", "this wire has no role `tool`"),
            Fact::ResultGiven { id } => because(
                format!("taken for the result of the open call {id:?} before it"),
                "it does not name a call of the request",
            ),
            Fact::RoleTaken { name: Some(name), taken } => {
                because(format!("role read as `{taken}`"), format!("{name:?} is not a role of this wire"))
            }
            Fact::RoleTaken { name: None, taken } => because(format!("role read as `{taken}`"), "the role is missing"),

            Fact::FieldUnknown { name } => because(format!("`{name}` removed"), "the field is not known"),
            Fact::FieldForeign { name, from, target } => because(
                format!("`{name}` removed"),
                format!("it is a field of {from}; nothing of {target} is known to mean the same"),
            )
            .cured("set the target's own field"),
            Fact::FieldUnfit { name, problem } => because(format!("`{name}` removed"), *problem),
            Fact::FieldSet { name, value } => {
                because(format!("`{name}` set to {value}"), "the target requires it, and the request has none")
            }
            Fact::ModelNeeded { given, target } => {
                let detail = match given {
                    Some(given) => format!("the model {given:?} removed"),
                    None => "a model is missing".to_owned(),
                };
                because(detail, format!("{target} requires the name of a model that it has"))
                    .cured("name it with `--model`")
            }
            Fact::ToolUndeclared { name, problem } => {
                because(format!("`{name}` removed"), format!("it cannot be declared on another wire: {problem}"))
                    .cured("`--tools` declares other tools")
            }
            Fact::FieldRemoved { name, refusal } => because(format!("`{name}` removed"), refusal.to_string()),
            Fact::FieldRebuilt { name, refusal } => because(format!("`{name}` rebuilt"), refusal.to_string()),
            Fact::ItemsAdded { why } => because("message added", *why),
            Fact::ItemsRemoved { count, why } => because(format!("{} removed", messages(*count)), *why),
            Fact::ItemsRebuilt { count, why } => because(format!("{} rebuilt from content", messages(*count)), *why),
            Fact::StillRefused { refusal, cure } => {
                because("not repaired, and still refused", format!("{}: {}", refusal.rule, refusal.problem)).cured(cure)
            }
        }
    }

    fn cured(self, cure: &'static str) -> Self {
        Self { cure: Some(cure), ..self }
    }
}

fn because<'a>(detail: impl Into<Cow<'a, str>>, why: impl Into<Cow<'a, str>>) -> Words<'a> {
    Words { detail: detail.into(), why: Some(why.into()), cure: None }
}

fn plain(detail: &'static str) -> Words<'static> {
    Words { detail: Cow::Borrowed(detail), why: None, cure: None }
}

fn messages(count: usize) -> String {
    if count == 1 { "message".to_owned() } else { format!("{count} messages from here on") }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the target refuses it ({}: {})", self.rule, self.problem)
    }
}

const fn cited(why: Cited) -> &'static str {
    match why {
        Cited::NoPlace => "this target has no place for them",
        Cited::OwnOnly => "the target takes only citations that it made itself, unchanged",
        Cited::AssistantOnly => "only the assistant's texts may have them",
    }
}

const fn unsigned(why: Unsigned) -> &'static str {
    match why {
        Unsigned::NoPlace => "this target's calls have no signature",
        Unsigned::Foreign => "another provider or model made it",
        Unsigned::NotOne => "it is not a signature of this target",
    }
}

const fn arguments(why: Arguments) -> &'static str {
    match why {
        Arguments::NotAnObject => "they are not a JSON object",
        Arguments::TooDeep => "they are nested deeper than the target takes",
        Arguments::RepeatedKey => "a key comes twice, which the target refuses; its last value counts",
        Arguments::Number => "a number in them is out of range",
    }
}

const fn thought(why: Thought) -> &'static str {
    match why {
        Thought::AsAsked => "as asked for",
        Thought::WithCalls => "the tool round that it led to is over, and is not sent as calls",
        Thought::Foreign => "another provider or model made it",
        Thought::Encrypted => "it is signed or encrypted for another target",
        Thought::Unsigned => "the target takes thinking only with its own signature, and all of a message or none",
        Thought::NotForModel => "the model is not known to take thinking that it did not sign",
        Thought::OutOfPlace => {
            "the target takes thinking only where the model had it: first, or after the results of its own tools, unchanged"
        }
        Thought::OlderTurn => "it is of an older turn, and only the last turns' thinking was asked for",
        Thought::ByServer => "the server knows it by its id only, which cannot be sent here",
        Thought::NothingFollows => "no item of the message follows it",
        Thought::NoPlace => "this target has no place for thinking",
        Thought::NoText => "it has no text that could be sent",
        Thought::Empty => "it is empty",
    }
}

fn unsent<'a>(why: &Unsent<'a>) -> Cow<'a, str> {
    Cow::Borrowed(match why {
        Unsent::Foreign(provider) => {
            return Cow::Owned(format!("it is {provider}'s own, and holds nothing that other models can read"));
        }
        Unsent::Refused(refusal) => return Cow::Owned(refusal.to_string()),
        Unsent::NotInRole(role, _) => return Cow::Owned(format!("{role} messages of this target cannot hold it")),
        Unsent::NoId => "it has no id",
        Unsent::IdUsed(Some(rule)) => return Cow::Owned(format!("another item has its id ({rule})")),
        Unsent::IdUsed(None) => "another item has its id",
        Unsent::IdForeign => "its id is not one of the provider's",
        Unsent::ResultMissing => "its result is not in the same message",
        Unsent::CallMissing(rule) => {
            return Cow::Owned(format!("the call that it answers is not before it ({rule})"));
        }
        Unsent::CallerMissing => "the call that made it is not before it",
        Unsent::CallRemoved => "the call that it answers was removed",
        Unsent::Unanswered(rule) => return Cow::Owned(format!("nothing answers it ({rule})")),
        Unsent::ByCaller => "only the caller may send it, not the model",
        Unsent::WithoutReasoning => "the target takes it only with the reasoning of its message (OR-09)",
        Unsent::NotTyped => "it is not an item of this target",
        Unsent::BesideMessage => "it stood beside the content of the answer",
        Unsent::FieldTaken => "the message has another field of that name",
        Unsent::Alone => "the message has nothing else",
        Unsent::Blank => "its text is white space only (GM-06)",
        Unsent::Changed => "the call's id, name or arguments were changed",
        Unsent::Unreadable => "another provider made them, or they cannot be read",
    })
}

/// Also written to the model, in the place of what is missing.
impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTaken => f.write_str("the target takes none"),
            Self::NoTranscript => f.write_str("the target takes none, and there is no transcript"),
            Self::NoAddress => f.write_str("its address is neither http(s) nor a data URL"),
            Self::AddressNotTaken(url) => write!(f, "the target takes data, not the address {url}"),
            Self::AddressOnly => f.write_str("the target takes data, not an address"),
            Self::NoData => f.write_str("there is no data"),
            Self::NotBase64 => f.write_str("its data is not base64"),
            Self::UrlNotBase64 => f.write_str("its data URL is not base64"),
            Self::NotUtf8 => f.write_str("its text is not UTF-8"),
            Self::Blank => f.write_str("its text is blank"),
            Self::Shows(shown, taken) => write!(f, "it is {shown:?}; {taken} are taken"),
            Self::Type(label, not) => write!(f, "its type {label:?} is not {not}"),
            Self::NoImage(label) => {
                write!(f, "its bytes, labelled {label:?}, are not those of a png, jpeg, gif or webp")
            }
            Self::TypeUnknown => f.write_str("neither label nor address show its type"),
            Self::Long(bytes, most) => write!(f, "it has {bytes} bytes as base64, at most {most} are taken"),
            Self::Wide(side, most) => write!(f, "its longer side has {side} pixels, at most {most} are taken"),
            Self::WideAmong(side, most, many) => {
                write!(f, "its longer side has {side} pixels, at most {most} are taken among more than {many} images")
            }
            Self::Many(most, what) => write!(f, "the target takes {most} {what}"),
        }
    }
}

fn mended<'a>(what: &str, how: &Mended) -> Words<'a> {
    match how {
        Mended::Canonical => because(format!("base64 of the {what} rewritten"), "it is not in its canonical form"),
        Mended::Bare(shown) => {
            because(format!("{what} sent as a data URL of {shown}"), "its address is base64 without a label")
        }
        Mended::Labelled(label, shown) if label.is_empty() => {
            because(format!("{what} sent as {shown}"), "its bytes show that, and it has no label")
        }
        Mended::Labelled(label, shown) => {
            because(format!("{what} sent as {shown}"), format!("its bytes show that, and its label says {label:?}"))
        }
        Mended::TextLabelled(label) => {
            because(format!("{what} sent as text/plain"), format!("few models take its label {label:?}"))
        }
        Mended::Decoded => because(format!("{what} sent as plain text"), "the target takes text without base64"),
        Mended::LongTitle => because(format!("name of the {what} removed"), "it is too long for a title"),
        Mended::AddressHasNoName => {
            because(format!("name of the {what} removed"), "the target takes no name beside an address")
        }
        Mended::NoNames => because(format!("name of the {what} removed"), "the target takes no file names"),
    }
}
