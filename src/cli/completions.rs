use clap::Command;
use clap_complete::Shell;

use super::failure::{Exit, Failure, Outcome};
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  convo completions bash > convo.bash
  convo completions zsh > _convo
  convo completions fish > convo.fish

Put the file where your shell looks for completions: ~/.local/share/bash-completion/completions/convo for bash, a \
directory of $fpath for zsh, ~/.config/fish/completions/convo.fish for fish.";

/// Print the completions of a shell: commands, options and their values
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &Args, mut program: Command, output: &mut Output) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "convo", &mut script);
    let script = String::from_utf8(script).map_err(|error| Failure::failed(error.to_string()))?;
    output.verbatim(&script)?;
    Ok(Exit::Done)
}
