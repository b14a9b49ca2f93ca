//! The program `convo`: [`conversation_store`] for the command line.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
