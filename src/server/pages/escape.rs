//! What the templates print: no browser obeys it, and no mark in it hides or reverses what is on the page.

use std::fmt::{self, Write};

use askama::filters::Escaper;

use crate::html::write_escaped;

/// The escaper of all templates; `askama.toml` names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, out: W, text: &str) -> fmt::Result {
        write_escaped(out, text)
    }
}
