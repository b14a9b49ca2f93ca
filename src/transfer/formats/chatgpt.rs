//! ChatGPT's export: `conversations.json`, whole or in shards, alone or in its zip.
//!
//! Sources: LibreChat's importers and their fixtures; the reference of fields in `docs/transfer.md`.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::json::fields::{Fields, array, is_empty};
use crate::model::{Audio, Body, Chunk, FinishReason, Message, Output, Role};
use crate::transfer::foreign::{Broken, Foreign, Node, Taken};
use crate::transfer::format::{Context, Format, Head, Reader};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "chatgpt",
    about: "ChatGPT's export",
    read: Some(Reader::Each { recognise, read }),
    tables: None,
    write: None,
};

fn recognise(head: &Head<'_>) -> bool {
    head.any(|fields| fields.peek("mapping").is_some_and(|raw| raw.get().starts_with('{')))
}

fn read(text: &str, context: &Context<'_>) -> Taken {
    let mut fields = Fields::read(text).map_err(|error| Broken::new(error.to_string()))?;
    let id = fields.string("conversation_id");
    let id = fields.string("id").or(id);
    let title = take::title(&mut fields, "title");
    let broken = |why: &str| Broken { id: id.clone(), title: title.clone(), why: why.to_owned() };
    let mapping = fields.object("mapping").ok_or_else(|| broken("it has no mapping, so no messages"))?;
    let mut foreign = Foreign::new(id.clone().unwrap_or_else(|| context.unnamed()));
    foreign.title.clone_from(&title);
    foreign.shown = fields.string("current_node");
    take::tag_if(&fields, "is_archived", "archived", &mut foreign);
    take::tag_if(&fields, "is_starred", "starred", &mut foreign);
    let mut nodes = Nodes { calls: HashMap::new(), context };
    let raw: Vec<_> = mapping.rest().map(|(id, raw)| (id.into_owned(), raw)).collect();
    for (id, raw) in &raw {
        nodes.look(id, raw);
    }
    for (id, raw) in raw {
        let (parent, message) = node(raw);
        let messages = match message {
            Some(message) => nodes.message(&id, parent.as_deref(), message, &mut foreign),
            None => Vec::new(),
        };
        foreign.nodes.push(Node { id, parent, messages });
    }
    foreign.rest = take::rest(fields);
    Ok(foreign)
}

fn node(raw: &RawValue) -> (Option<String>, Option<&RawValue>) {
    let mut fields = Fields::of(raw).unwrap_or_default();
    (fields.string("parent"), fields.take("message"))
}

/// What must be known of other nodes.
struct Nodes<'a> {
    /// The tool that a node calls.
    calls: HashMap<String, String>,
    context: &'a Context<'a>,
}

impl Nodes<'_> {
    fn look(&mut self, id: &str, raw: &RawValue) {
        let mut fields = node(raw).1.and_then(Fields::of).unwrap_or_default();
        let role = fields.object("author").and_then(|mut author| author.string("role"));
        let kind = fields.object("content").and_then(|mut content| content.string("content_type"));
        // Arguments are text.
        if role.as_deref() == Some("assistant")
            && matches!(kind.as_deref(), None | Some("text" | "code" | ""))
            && let Some(tool) = fields.string("recipient").filter(|recipient| recipient != "all")
        {
            self.calls.insert(id.to_owned(), tool);
        }
    }

    fn message(&self, id: &str, parent: Option<&str>, raw: &RawValue, foreign: &mut Foreign) -> Vec<Message> {
        let Some(mut fields) = Fields::of(raw) else {
            foreign.skip("message_that_is_no_object");
            return Vec::new();
        };
        let mut author = fields.object("author").unwrap_or_default();
        let role = author.string("role").unwrap_or_default();
        let mut content = fields.object("content").unwrap_or_default();
        let kind = content.string("content_type").unwrap_or_default();
        let mut metadata = fields.object("metadata").unwrap_or_default();
        let pointers = pointers(&content);
        let mut chunks = self.content(&kind, &mut content, raw, foreign);
        self.attachments(&mut metadata, &pointers, &mut chunks);
        let role = match (role.as_str(), kind.as_str()) {
            (_, "user_editable_context" | "model_editable_context") | ("system", _) => Role::System,
            ("assistant", _) => Role::Assistant,
            ("tool", _) => Role::Tool,
            ("user", _) => Role::User,
            _ => {
                foreign.skip("unknown_role_taken_for_user");
                Role::User
            }
        };
        // What tools write after a call's answer, or without a call, stays what it is.
        let answered = parent.filter(|parent| role == Role::Tool && self.calls.contains_key(*parent));
        let call = self.calls.get(id);
        if chunks.is_empty() && answered.is_none() && call.is_none() {
            foreign.skip("empty_message");
            return Vec::new();
        }
        if let Some(tool) = call {
            let called = Chunk::tool_call(id, tool, words(&chunks));
            chunks.retain(|chunk| !matches!(chunk.body, Body::Text { .. }));
            chunks.insert(0, called);
        }
        if let Some(call) = answered {
            chunks = result(call, author.string("name"), chunks);
        }
        let mut message = Message::new(role, chunks);
        message.metadata.id = fields.string("id");
        message.metadata.created_at = take::moment_of(&mut fields, "create_time");
        message.metadata.model = metadata.string("model_slug");
        if role == Role::Assistant {
            message.metadata.provider = Some("openai".to_owned());
            let reason = metadata.object("finish_details").and_then(|mut details| details.string("type"));
            message.finish_reason = reason.and_then(|reason| FinishReason::given(&reason));
        }
        for mut fields in [content, metadata, author, fields] {
            fields.drop_if(|_, raw| is_empty(raw));
            take::keep(fields, Some(&mut message));
        }
        vec![message]
    }

    fn content(&self, kind: &str, content: &mut Fields<'_>, raw: &RawValue, foreign: &mut Foreign) -> Vec<Chunk> {
        let one = |text: Option<String>| text.filter(|text| !text.is_empty()).map(Chunk::text).into_iter().collect();
        match kind {
            "text" | "multimodal_text" => {
                let parts = content.array("parts").unwrap_or_default();
                parts.into_iter().filter_map(|part| self.part(part)).collect()
            }
            "thoughts" => {
                let thoughts = content.array("thoughts").unwrap_or_default().into_iter().filter_map(Fields::of);
                let paragraphs = thoughts.map(|mut thought| {
                    let said = [thought.string("summary"), thought.string("content")].into_iter().flatten();
                    said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
                });
                let text = paragraphs.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
                if text.is_empty() { Vec::new() } else { vec![Chunk::thinking(text)] }
            }
            // How long the model thought: it is no content.
            "reasoning_recap" => content.string("content").map(Chunk::thinking).into_iter().collect(),
            "user_editable_context" => {
                let texts = [content.string("user_profile"), content.string("user_instructions")];
                one(Some(texts.into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")))
            }
            "model_editable_context" => one(content.string("model_set_context")),
            "tether_browsing_display" => {
                let texts = [content.string("summary"), content.string("result")];
                one(Some(texts.into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")))
            }
            "system_error" => {
                let (message, code) = (content.string("text").unwrap_or_default(), content.string("name"));
                vec![Body::Error { message, code }.into()]
            }
            _ => match content.string("text") {
                // Code, its output, quotes, pages.
                Some(text) => one(Some(text)),
                None => {
                    foreign.skip(format!("content_kept_as_it_is:{kind}"));
                    let raw = Fields::of(raw).and_then(|mut fields| fields.take("content"));
                    raw.and_then(|raw| take::opaque(raw, kind, FORMAT.name)).into_iter().collect()
                }
            },
        }
    }

    fn part(&self, raw: &RawValue) -> Option<Chunk> {
        let Some(mut fields) = Fields::of(raw) else { return take::stray(raw, FORMAT.name) };
        match fields.string("content_type").unwrap_or_default().as_str() {
            "image_asset_pointer" => {
                let pointer = fields.string("asset_pointer")?;
                let found = self.context.assets.find(asset(&pointer));
                let picture = take::picture(found, &pointer, None);
                Some(take::with_rest(fields, picture.body))
            }
            "audio_transcription" => {
                let text = fields.string("text")?;
                Some(take::with_rest(fields, Body::Text { text, annotations: None }))
            }
            "audio_asset_pointer" => {
                let pointer = fields.string("asset_pointer")?;
                Some(take::with_rest(fields, Body::Audio(self.sound(pointer))))
            }
            // What was said by voice, with what the camera saw.
            "real_time_user_audio_video_asset_pointer" => {
                let spoken = fields.peek("audio_asset_pointer").and_then(Fields::of);
                let pointer = spoken.and_then(|mut spoken| spoken.string("asset_pointer"));
                match pointer {
                    Some(pointer) => Some(take::with_rest(fields, Body::Audio(self.sound(pointer)))),
                    None => take::opaque(raw, "real_time_user_audio_video_asset_pointer", FORMAT.name),
                }
            }
            kind => take::opaque(raw, kind, FORMAT.name),
        }
    }

    /// Sound that came with the export, otherwise its name.
    fn sound(&self, pointer: String) -> Audio {
        match self.context.assets.find(asset(&pointer)) {
            Some((name, bytes)) => {
                let mime_type = Some(take::mime_of(&name).to_owned());
                Audio { data: Some(STANDARD.encode(bytes)), mime_type, ..Audio::default() }
            }
            None => Audio { url: Some(pointer), ..Audio::default() },
        }
    }

    /// Files that the message names without a part of their own.
    fn attachments(&self, metadata: &mut Fields<'_>, pointers: &[String], chunks: &mut Vec<Chunk>) {
        for raw in metadata.peek("attachments").and_then(array).unwrap_or_default() {
            let Some(mut file) = Fields::of(raw) else { continue };
            let Some(id) = file.string("id") else { continue };
            if pointers.iter().any(|pointer| asset(pointer) == id) {
                continue;
            }
            let found = self.context.assets.find(&id);
            let (name, mime_type) = (file.string("name"), file.string("mime_type"));
            let document = take::document(found, &format!("file-service://{id}"), name, mime_type);
            chunks.push(take::with_rest(file, document.body));
        }
        metadata.take("attachments");
    }
}

/// What the parts of a message point to.
fn pointers(content: &Fields<'_>) -> Vec<String> {
    let parts = content.peek("parts").and_then(array).unwrap_or_default();
    parts.into_iter().filter_map(|part| Fields::of(part)?.string("asset_pointer")).collect()
}

/// The id in a pointer.
fn asset(pointer: &str) -> &str {
    pointer.rsplit("://").next().unwrap_or(pointer)
}

fn words(chunks: &[Chunk]) -> String {
    let texts = chunks.iter().filter_map(|chunk| match &chunk.body {
        Body::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A tool's message as the result of a call; pictures and the like stay beside it.
fn result(id: &str, name: Option<String>, chunks: Vec<Chunk>) -> Vec<Chunk> {
    let failure = chunks.iter().find_map(|chunk| match &chunk.body {
        Body::Error { message, .. } => Some(message.clone()),
        _ => None,
    });
    let is_error = failure.as_ref().map(|_| true);
    let text = failure.unwrap_or_else(|| words(&chunks));
    let mut said: Vec<Chunk> = vec![take::result(id, name, Output::Text(text), is_error).into()];
    said.extend(chunks.into_iter().filter(|chunk| !matches!(chunk.body, Body::Text { .. })));
    said
}
