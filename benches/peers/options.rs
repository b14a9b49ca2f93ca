//! What the command line says.

use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
cargo bench --bench peers --features peers,fjall -- [OPTIONS]
  --quick          few rounds, small stores: three minutes. Only the rows of appends say how fast it is
  --only NAME      only this workload; may be given more than once. growth and profile are done only by name
  --engine NAME    only this engine; may be given more than once
  --threads N      only with so many threads
  --json FILE      adds a line of JSON for every result
  --dir DIR        where the stores are made; default: a directory below target/";

/// The options.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Cargo asks for a benchmark. Without it the engines are only compared with each other, as a test.
    pub(crate) bench: bool,
    pub(crate) quick: bool,
    pub(crate) only: Vec<String>,
    pub(crate) engines: Vec<String>,
    pub(crate) threads: Option<usize>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) dir: Option<PathBuf>,
    /// This is a process that fills a store, for another one to look at: so many chunks of so many bytes.
    pub(crate) fill: Option<(usize, usize)>,
    /// This is a process that prints one table of growth, so that its memory is its own.
    pub(crate) grow: Option<String>,
}

impl Options {
    /// The problem, if the words make no sense.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--bench" => options.bench = true,
                "--quick" => options.quick = true,
                "--only" => options.only.push(value()?),
                "--engine" => options.engines.push(value()?),
                "--threads" => options.threads = Some(number(&value()?)?),
                "--json" => options.json = Some(value()?.into()),
                "--dir" => options.dir = Some(value()?.into()),
                "--fill" => options.fill = Some((number(&value()?)?, number(&value()?)?)),
                "--grow" => options.grow = Some(value()?),
                _ => return Err(format!("{word} is no option")),
            }
        }
        Ok(options)
    }
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}
