//! What prompts cost, and how much of one a provider's cache can reuse.
//!
//! `cargo bench --bench provider` prints the tables of `src/docs/performance.md`. Words choose of them: tables (`speed`,
//! `cache`, `calls`), works (`check`), wires (`gemini`), lengths (`1000`). Without `--bench`, as in `cargo test --benches`, all of
//! it runs once on little.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

mod agent;
mod cache;
mod calls;
mod deltas;
mod speed;

use conversation_store::provider::{Target, WIRES};
use speed::WORKS;

fn main() {
    let (options, words): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let is_bench = options.iter().any(|option| option == "--bench");
    let wires: Vec<Target> = chosen(WIRES, |wire| wire.name, &words).map(|wire| wire.name.parse().unwrap()).collect();
    let lengths: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let lengths = match (lengths.is_empty(), is_bench) {
        (false, _) => lengths,
        (true, true) => vec![100, 1_000, 10_000, 100_000],
        (true, false) => vec![10, 100],
    };
    for table in chosen(&["speed", "cache", "calls"], |table| table, &words) {
        match *table {
            "speed" => speed::print(&chosen(WORKS, |work| work.name, &words).collect::<Vec<_>>(), &wires, &lengths),
            "calls" => calls::print(&wires, &lengths),
            _ => cache::print(&wires, if is_bench { 200 } else { 4 }),
        }
    }
}

/// Those whose names are among the words, or all, if none is.
fn chosen<'a, T>(all: &'a [T], name: fn(&T) -> &str, words: &'a [String]) -> impl Iterator<Item = &'a T> {
    let is_named = move |one: &T| words.iter().any(|word| word == name(one));
    let any = all.iter().any(is_named);
    all.iter().filter(move |one| !any || is_named(one))
}
