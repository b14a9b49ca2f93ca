//! What a request says beside its messages and tools, and where each wire has it: the length of the answer, how its words are
//! chosen, which tools are called, the form of the answer.
//!
//! `TABLE` has the parameters whose values are the same on each wire that has them. The choice of tools and the form of the
//! answer are of another shape on each wire: `choice` and `form` read and write them. What writes parameters of one wire on
//! another asks here: the repair of a request, and the server's Responses.
//!
//! Sources: the references of the five APIs, "Create chat completion", "Create a model response", "Create a Message",
//! `GenerationConfig`, `Converse`; the types of the vendors' Python SDKs (openai 3.52.0, anthropic 2.14.0, google-genai 3.4.0,
//! botocore 1.44.8); for what other servers of Responses take, the Open Responses specification.

pub(crate) mod choice;
pub(crate) mod form;

use super::target::Target;

/// The wires, in the order of the columns.
pub(crate) const WIRES: [&str; 5] = ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"];
pub(crate) const CHAT: usize = 0;
pub(crate) const RESPONSES: usize = 1;
pub(crate) const ANTHROPIC: usize = 2;
pub(crate) const GEMINI: usize = 3;

/// The column of a target's wire.
pub(crate) fn column(target: Target) -> usize {
    WIRES.iter().position(|wire| *wire == target.wire().name).unwrap_or_default()
}

/// Whether the server is OpenAI's, or serves OpenAI's models with OpenAI's parameters.
pub(crate) fn is_openais(target: Target) -> bool {
    target.dialect().is_none_or(|dialect| dialect.name == "azure")
}

/// What values a parameter has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// The same on each wire.
    Same,
    /// A number, up to the highest that each wire takes.
    UpTo([f64; WIRES.len()]),
    /// A text or a list of texts, at most so many on each wire.
    Stops([usize; WIRES.len()]),
    /// A flag that other wires have in the address of a request.
    Stream,
}

/// A parameter: its paths on each wire.
#[derive(Debug)]
pub(crate) struct Parameter {
    at: [&'static [&'static str]; WIRES.len()],
    pub(crate) shape: Shape,
    /// Whether of all servers of Chat Completions only OpenAI's and Azure's are known to take it.
    pub(crate) is_openais: bool,
    /// Whether Responses has it by the Open Responses specification alone: OpenAI's and Azure's servers are not known to take
    /// it.
    is_open: bool,
}

impl Parameter {
    /// The paths that a wire reads it at. Of several, OpenAI's newer models take the first, other servers the last.
    pub(crate) fn paths(&self, wire: usize) -> &'static [&'static str] {
        self.at.get(wire).copied().unwrap_or_default()
    }

    /// The path at which a target takes it.
    pub(crate) fn place(&self, target: Target) -> Option<&'static str> {
        let (wire, paths) = (column(target), self.paths(column(target)));
        if is_openais(target) {
            return paths.first().copied().filter(|_| !(self.is_open && wire == RESPONSES));
        }
        paths.last().copied().filter(|_| !(self.is_openais && wire == CHAT))
    }
}

/// The parameter that Responses has at a path; else that of Chat Completions.
#[cfg(feature = "server")]
pub(crate) fn at(path: &str) -> Option<&'static Parameter> {
    let of = |wire: usize| TABLE.iter().find(|parameter| parameter.paths(wire).first() == Some(&path));
    of(RESPONSES).or_else(|| of(CHAT))
}

const fn parameter(shape: Shape, at: [&'static [&'static str]; WIRES.len()]) -> Parameter {
    Parameter { at, shape, is_openais: false, is_open: false }
}

const fn same(at: [&'static [&'static str]; WIRES.len()]) -> Parameter {
    parameter(Shape::Same, at)
}

const fn openais(at: [&'static [&'static str]; WIRES.len()]) -> Parameter {
    Parameter { is_openais: true, ..same(at) }
}

/// A number of OpenAI's Chat Completions, of the Open Responses specification, and of Gemini.
const fn penalty(name: &'static [&'static str], of_gemini: &'static [&'static str]) -> Parameter {
    Parameter { is_open: true, ..same([name, name, &[], of_gemini, &[]]) }
}

/// Of OpenAI's two wires alone, under one name.
const fn of_openai(name: &'static [&'static str]) -> Parameter {
    openais([name, name, &[], &[], &[]])
}

/// All of them. Of two that a wire has at one path, the first is read there.
pub(crate) const TABLE: &[Parameter] = &[
    same([
        &["max_completion_tokens", "max_tokens"],
        &["max_output_tokens"],
        &["max_tokens"],
        &["generationConfig.maxOutputTokens"],
        &["inferenceConfig.maxTokens"],
    ]),
    parameter(
        Shape::UpTo([2.0, 2.0, 1.0, 2.0, 1.0]),
        [
            &["temperature"],
            &["temperature"],
            &["temperature"],
            &["generationConfig.temperature"],
            &["inferenceConfig.temperature"],
        ],
    ),
    same([&["top_p"], &["top_p"], &["top_p"], &["generationConfig.topP"], &["inferenceConfig.topP"]]),
    same([&[], &[], &["top_k"], &["generationConfig.topK"], &[]]),
    parameter(
        Shape::Stops([4, 0, usize::MAX, 5, 4]),
        [&["stop"], &[], &["stop_sequences"], &["generationConfig.stopSequences"], &["inferenceConfig.stopSequences"]],
    ),
    openais([&["seed"], &[], &[], &["generationConfig.seed"], &[]]),
    openais([&["n"], &[], &[], &["generationConfig.candidateCount"], &[]]),
    penalty(&["presence_penalty"], &["generationConfig.presencePenalty"]),
    penalty(&["frequency_penalty"], &["generationConfig.frequencyPenalty"]),
    same([&["reasoning_effort"], &["reasoning.effort"], &[], &[], &[]]),
    openais([&["verbosity"], &["text.verbosity"], &[], &[], &[]]),
    // Two names for one opaque identifier of a person, against abuse.
    openais([&["user"], &["user"], &["metadata.user_id"], &[], &[]]),
    openais([&["safety_identifier"], &["safety_identifier"], &["metadata.user_id"], &[], &[]]),
    openais([&["metadata"], &["metadata"], &[], &[], &["requestMetadata"]]),
    of_openai(&["service_tier"]),
    of_openai(&["store"]),
    of_openai(&["prompt_cache_key"]),
    of_openai(&["prompt_cache_retention"]),
    of_openai(&["prompt_cache_options"]),
    parameter(Shape::Stream, [&["stream"], &["stream"], &["stream"], &[], &[]]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_the_wires() {
        assert_eq!(crate::provider::WIRES.iter().map(|wire| wire.name).collect::<Vec<_>>(), WIRES);
        for (wire, at) in
            [("openai-chat", CHAT), ("openai-responses", RESPONSES), ("anthropic", ANTHROPIC), ("gemini", GEMINI)]
        {
            assert_eq!(column(wire.parse().unwrap()), at);
        }
    }

    #[test]
    fn a_server_takes_a_parameter_by_its_own_name() {
        let place = |path: &str, target: &str| {
            let wire = column(target.parse().unwrap());
            let has = |parameter: &&Parameter| (0..WIRES.len()).any(|at| parameter.paths(at).contains(&path));
            let found = TABLE.iter().find(has).unwrap();
            (found.place(target.parse().unwrap()), found.paths(wire).len())
        };
        assert_eq!(place("max_output_tokens", "openai-chat"), (Some("max_completion_tokens"), 2));
        assert_eq!(place("max_output_tokens", "openai-chat/azure"), (Some("max_completion_tokens"), 2));
        assert_eq!(place("max_output_tokens", "openai-chat/ollama"), (Some("max_tokens"), 2));
        assert_eq!(place("user", "openai-chat/ollama"), (None, 1));
        assert_eq!(place("user", "openai-responses/azure"), (Some("user"), 1));
        assert_eq!(place("safety_identifier", "anthropic"), (Some("metadata.user_id"), 1));
        assert_eq!(place("top_k", "openai-chat"), (None, 0));
        for name in ["presence_penalty", "frequency_penalty"] {
            assert_eq!(place(name, "openai-responses"), (None, 1));
            assert_eq!(place(name, "openai-responses/azure"), (None, 1));
            assert_eq!(place(name, "openai-responses/deepseek"), (Some(name), 1));
            assert_eq!(place(name, "openai-chat/ollama"), (Some(name), 1));
        }
    }
}
