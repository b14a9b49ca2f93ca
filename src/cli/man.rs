use std::fs;
use std::path::PathBuf;

use clap::Command;

use super::failure::{Exit, Failure, Outcome};
use super::output::{self, Output};

const EXAMPLES: &str = "\
Examples:
  convo man man1
  man ./man1/convo-prompt.1

To make `man convo` find them: convo man ~/.local/share/man/man1.";

/// Write the manual: one page for the program, and one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The directory; it is created if it does not exist
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

pub(super) fn run(args: &Args, program: Command, _: &mut Output) -> Outcome {
    let cannot = |error: std::io::Error| {
        Failure::new("io", format!("cannot write the manual to {}: {error}", args.directory.display()))
    };
    fs::create_dir_all(&args.directory).map_err(cannot)?;
    clap_mangen::generate_to(program, &args.directory).map_err(cannot)?;
    output::note(&format!("the manual is in {0}: man {0}/convo.1", args.directory.display()));
    Ok(Exit::Done)
}
