use std::path::PathBuf;

use conversation_store::model::{Body, FinishReason, Metadata, Name, Role};
use conversation_store::provider::{Decoder, Event, Target};
use conversation_store::{MessageWriter, Receipt, Store};

use super::failure::{Exit, Failure, Outcome};
use super::lines::Input;
use super::location::Location;
use super::output::{self, Output};
use super::values::conversation;

const EXAMPLES: &str = "\
Examples:
  curl -N https://api.openai.com/v1/... | convo ingest chat-42 --from openai-chat
  convo ingest chat-42 --from anthropic response.json
  convo ingest chat-42 --from openai-chat/deepseek stream.txt

The answer is a whole response, or a stream: server-sent events, or lines of JSON; convo recognises which. It is \
stored while it arrives, and its receipt is printed at its end.

Exit code 1 if the answer is an error or was cut off: it is stored as such. Exit code 2 if the input holds no answer, \
or an answer of another wire: nothing is stored.";

/// Append a provider's answer, whole or while it streams
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation; it is created if it does not exist
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The answer; - for stdin
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The wire, or the wire and its dialect, of the answer
    #[arg(long, value_name = "WIRE")]
    from: Target,
    /// The provider of the answer if it is not the wire's vendor, as in openrouter
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let mut input = Input::open(&args.file)?;
    let mut ingest = Ingest {
        store: location.create()?,
        name: location.name(&args.conversation),
        provider: args.provider.clone(),
        writer: None,
        failure: None,
    };
    // A reader that does not wait for the receipt still wants the answer stored.
    output.outlive_reader();
    let mut decoder = Decoder::new(args.from);
    let (mut line, mut bytes) = (1_usize, 0_usize);
    let mut ended = Ok(());
    loop {
        let piece = match input.piece() {
            Ok(piece) if piece.is_empty() => break,
            Ok(piece) => piece,
            Err(failure) => {
                ended = Err(failure);
                break;
            }
        };
        // Line by line, so that an error names its line.
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let events =
                decoder.push(part).map_err(|error| Failure::from(error).at(&format!("{}:{line}", input.name)))?;
            if let Some(wire) = decoder.other_wire()
                && ingest.writer.is_none()
            {
                let (name, from, wire) = (&input.name, args.from, wire.name);
                let message = format!("{name}:{line}: this is not an answer of {from}; it looks like one of {wire}");
                return Err(Failure::new("invalid_input", format!("{message}; nothing was stored"))
                    .with_cure(format!("read it with --from {wire}")));
            }
            ingest.take(events, &format!("{}:{line}", input.name))?;
            line += usize::from(part.ends_with(b"\n"));
            bytes += part.len();
        }
    }
    if bytes == 0 {
        ended?;
        return Err(Failure::usage(format!("{}: it is empty; expected an answer of {}", input.name, args.from)));
    }
    let finished = ingest.finish(decoder.finish(), &input.name, bytes);
    let (receipt, reason) =
        finished.map_err(|failure| failure.with_cure(format!("is it an answer of {}?", args.from)))?;
    output::receipt(&ingest.name, &receipt, output)?;
    output.flush()?;
    ended?;
    if let Some(failure) = ingest.failure {
        return Err(failure);
    }
    if reason == Some(FinishReason::Interrupted) {
        let message =
            format!("{}: the answer was cut off after {bytes} bytes; it is stored as interrupted", input.name);
        return Err(Failure::finding("answer_cut_off", message).with_cure("`convo next-step` states what to do now"));
    }
    Ok(Exit::Done)
}

struct Ingest {
    store: Store,
    name: Name,
    provider: Option<String>,
    /// Set once the answer has begun.
    writer: Option<MessageWriter>,
    /// The first error that the provider, or something between, reported.
    failure: Option<Failure>,
}

impl Ingest {
    /// Stores what arrived.
    fn take(&mut self, events: Vec<Event>, place: &str) -> Result<Option<Receipt>, Failure> {
        let mut receipt = None;
        for event in events {
            match &event {
                Event::Begin(metadata) if self.writer.is_none() => {
                    let provider = self.provider.clone().or_else(|| metadata.provider.clone());
                    let metadata = Metadata { provider, ..metadata.clone() };
                    self.writer = Some(self.store.begin(self.name.clone(), Role::Assistant, metadata)?);
                }
                Event::Delta { chunk, .. } => {
                    if let Body::Error { message, code } = &chunk.body
                        && self.failure.is_none()
                    {
                        let code = code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
                        let message = format!("{place}: the answer is an error, and is stored as one: {message}{code}");
                        self.failure = Some(Failure::finding("answer_is_error", message));
                    }
                }
                _ => {}
            }
            if let Some(writer) = &mut self.writer {
                receipt = writer.ingest([event])?;
            }
        }
        Ok(receipt)
    }

    /// Stores the end; nothing at all if the input held no answer.
    fn finish(
        &mut self,
        events: Vec<Event>,
        name: &str,
        bytes: usize,
    ) -> Result<(Receipt, Option<FinishReason>), Failure> {
        if self.writer.is_none() {
            let problem = events.iter().find_map(|event| match event {
                Event::Delta { chunk, .. } => match &chunk.body {
                    Body::Error { message, .. } => Some(message.clone()),
                    _ => None,
                },
                _ => None,
            });
            let problem = problem.unwrap_or_else(|| format!("it ends after {bytes} bytes, before an answer begins"));
            return Err(Failure::usage(format!("{name}: {problem}; nothing was stored")));
        }
        let reason = events.iter().find_map(|event| match event {
            Event::Finish { reason, .. } => reason.clone(),
            _ => None,
        });
        let first_seq = self.writer.as_ref().map(MessageWriter::first_seq);
        let mut receipt = self.take(events, name)?.ok_or_else(|| Failure::failed("a decoder gave no end"))?;
        receipt.first_seq = first_seq.unwrap_or(receipt.first_seq);
        Ok((receipt, reason))
    }
}
