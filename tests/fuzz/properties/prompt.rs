//! Logs as nobody should write them: their prompts are accepted and conserved, on every target.

use conversation_store::provider::{FinishedTools, PromptOptions, Thinking};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::common::{hostile, prompts};

/// The generator gives each message a quarter of what is left of its chance. Where there is none left, all is zero, and some of
/// its draws are repeated until they are not.
const CHANCE_BYTES: usize = 1024 * 1024;
/// Ends every repetition of the given chance: none of these is zero.
const NOISE: &[u8] = b"\x9e\x37\x79\xb9\x7f\x4a\x7c\x15\xf3\x9c\xc0\x60\x5c\xed\xc8\x34";

/// Takes the first byte as the options, and the others, again and again, as what the generator of hostile logs takes for
/// chance.
pub fn holds(data: &[u8]) {
    let Some((first, chance)) = data.split_first() else { return };
    let options = options(*first);
    let chance = [chance, NOISE].concat();
    let chance = chance.repeat(CHANCE_BYTES.div_ceil(chance.len()));
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::PassThrough, &chance));
    let log = hostile::log(6).new_tree(&mut runner).unwrap().current();
    for target in prompts::targets() {
        if let Some(prompt) = prompts::prompt(target, &log, &options) {
            prompts::assert_accepted(target, &prompt);
            prompts::assert_conserved(target, &log, &prompt);
        }
    }
}

fn options(byte: u8) -> PromptOptions {
    let thinking = [Thinking::Native, Thinking::Tagged, Thinking::Omit];
    let tools = [FinishedTools::Keep, FinishedTools::Flatten, FinishedTools::Drop];
    let model = [None, Some("claude-3-5-sonnet"), Some("openai")];
    let mut rest = usize::from(byte);
    let mut digit = || {
        let digit = rest % 3;
        rest /= 3;
        digit
    };
    let options = PromptOptions::new().with_thinking(thinking[digit()]).with_finished_tools(tools[digit()]);
    model[digit()].into_iter().fold(options, PromptOptions::with_model)
}
