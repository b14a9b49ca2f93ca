//! Text for people: aligned, wrapped, cut, coloured where that is wanted, and without anything that a terminal would obey; and
//! the report as text.

use std::borrow::Cow;
use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use conversation_store::model::{Role, Timestamp};
use conversation_store::{ReportLine, Severity};

/// The width without a terminal, and the most with one: longer lines are hard to read.
const WIDTH: usize = 100;
/// Lines of a text before it is folded.
const LINES: usize = 30;
/// The least width: a text of one word per line is no text.
const MIN_WIDTH: usize = 40;

/// The layout of texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Columns of a line, including its indent.
    pub(super) width: usize,
    /// Lines of a text before the rest of it is folded.
    pub(super) lines: usize,
    /// What to do to see the rest.
    pub(super) more: &'static str,
}

impl Layout {
    /// As wide as the terminal, folded.
    pub(super) fn folded(more: &'static str) -> Self {
        let terminal = terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| usize::from(columns));
        let width = terminal.unwrap_or(WIDTH).clamp(MIN_WIDTH, WIDTH);
        Self { width, lines: LINES, more }
    }

    /// The same, with nothing folded.
    pub(super) const fn whole(self) -> Self {
        Self { lines: usize::MAX, ..self }
    }
}

/// The text with its control characters made visible: stored text must not command the terminal.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |character| character.escape_unicode().to_string())
}

/// JSON, with the control characters that JSON itself permits written as escapes.
pub(super) fn escape_json(json: &str) -> Cow<'_, str> {
    escape(json, |character| format!("\\u{:04x}", u32::from(character)))
}

fn escape(text: &str, show: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.chars().any(is_command) {
        return Cow::Borrowed(text);
    }
    let shown = |character| if is_command(character) { show(character) } else { String::from(character) };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Controls other than line breaks and tabs, and the marks that reverse the direction of what follows.
fn is_command(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first line, up to this many characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let mut cut: String = line.chars().take(width).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    printable(&cut).into_owned()
}

/// The text wrapped at spaces, each line after `indent`; a text that is too long is folded, and its last line reports
/// that.
pub(super) fn wrap(text: &str, indent: &str, layout: Layout) -> String {
    let text = printable(text.trim_end_matches('\n'));
    let width = layout.width.saturating_sub(indent.len()).max(1);
    let mut out = String::new();
    let lines: Vec<String> = text.lines().flat_map(|line| wrap_line(line, width)).collect();
    // Folding one line away saves nothing: a line reports it.
    let shown = if lines.len() > layout.lines.saturating_add(1) { layout.lines } else { lines.len() };
    for line in lines.iter().take(shown) {
        let _ = writeln!(out, "{}", format!("{indent}{line}").trim_end());
    }
    if lines.len() > shown {
        let folded = lines.iter().skip(shown).map(|line| line.chars().count()).sum::<usize>();
        let (lines, folded) = (count(lines.len() - shown, "more line"), count(folded, "character"));
        let _ = writeln!(out, "{indent}{DIM}… {lines}, {folded}: {}{DIM:#}", layout.more);
    }
    out
}

/// The line in pieces of at most `width` characters, cut at spaces if there are any.
fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in line.split_inclusive(' ') {
        let word_length = word.trim_end().chars().count();
        if length > 0 && length + word_length > width {
            lines.push(String::new());
            length = 0;
        }
        for character in word.chars() {
            if length >= width && character != ' ' {
                lines.push(String::new());
                length = 0;
            }
            if let Some(last) = lines.last_mut() {
                last.push(character);
            }
            length += 1;
        }
    }
    lines
}

/// Rows with aligned columns, two spaces between them. The last column is not padded.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or_default()).collect();
    let mut out = String::new();
    for row in rows {
        let cells =
            row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column + 1 == N { cell.clone() } else { format!("{cell:<width$}  ") }
            });
        let line: String = cells.collect();
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// The same, with column titles in the first row.
pub(super) fn titled_table<const N: usize>(rows: &[[String; N]]) -> String {
    let table = table(rows);
    match table.split_once('\n') {
        Some((titles, rest)) => format!("{DIM}{titles}{DIM:#}\n{rest}"),
        None => table,
    }
}

/// `2026-01-02 03:04:05`, UTC.
pub(super) fn time(moment: Timestamp) -> String {
    let text = moment.to_string();
    text.split(['.', 'Z']).next().unwrap_or(&text).replace('T', " ")
}

/// `1 message`, `2 messages`.
pub(super) fn count(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// JSON text with line breaks and indents; keys, numbers and strings unchanged.
pub(super) fn pretty_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            out.push(character);
            (in_string, escaped) = (escaped || character != '"', !escaped && character == '\\');
            continue;
        }
        match character {
            '"' => {
                in_string = true;
                out.push(character);
            }
            '{' | '[' if characters.peek().is_some_and(|next| matches!(next, '}' | ']')) => out.push(character),
            '{' | '[' => {
                depth += 1;
                out.push(character);
                break_line(&mut out, depth);
            }
            '}' | ']' if out.ends_with(['{', '[']) => out.push(character),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            space if space.is_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// The widest name of a severity.
const SEVERITY_WIDTH: usize = 7;

/// The sums, `2 lost, 1 changed, 3 notes`, and each line of the report with its severity. Empty if the report is.
pub(super) fn report(of: Option<&str>, report: &[ReportLine]) -> String {
    if report.is_empty() {
        return String::new();
    }
    let of = of.map_or_else(String::new, |name| format!("{name}: "));
    let mut out = format!("{WARNING}report:{WARNING:#} {}{}\n", printable(&of), sums(report));
    for severity in Severity::ALL {
        let style = severity_style(*severity);
        for line in report.iter().filter(|line| line.severity == *severity) {
            let words = line.to_string();
            let mut words = words.lines();
            let first = printable(words.next().unwrap_or_default());
            out.push_str(&format!("  {style}{severity:SEVERITY_WIDTH$}{style:#}  {first}\n"));
            for more in words {
                out.push_str(&format!("  {:SEVERITY_WIDTH$}  {}\n", "", printable(more)));
            }
        }
    }
    out
}

fn sums(report: &[ReportLine]) -> String {
    let sums = Severity::ALL.iter().filter_map(|severity| {
        let lines = report.iter().filter(|line| line.severity == *severity).count();
        match severity {
            _ if lines == 0 => None,
            Severity::Note => Some(count(lines, "note")),
            _ => Some(format!("{lines} {severity}")),
        }
    });
    sums.collect::<Vec<_>>().join(", ")
}

fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Lost => ERROR,
        Severity::Changed => WARNING,
        _ => DIM,
    }
}

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default();

/// The colour of a role.
pub(super) fn style_of(role: Role) -> Style {
    match role {
        Role::System => AnsiColor::Yellow.on_default().bold(),
        Role::User => AnsiColor::Green.on_default().bold(),
        Role::Assistant => AnsiColor::Cyan.on_default().bold(),
        Role::Tool => AnsiColor::Magenta.on_default().bold(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_does_not_command_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n\tc\u{9b}"), "a\\u{1b}[31mb\n\tc\\u{9b}");
        assert_eq!(printable("plain é"), Cow::Borrowed("plain é"));
        assert_eq!(escape_json("\"\u{7f}\u{202e}é\""), "\"\\u007f\\u202eé\"");
    }

    #[test]
    fn texts_are_cut_to_one_line() {
        assert_eq!(cut("  one\ntwo", 10), "one…");
        assert_eq!(cut("héllo", 3), "hél…");
        assert_eq!(cut("abc\n", 3), "abc");
    }

    #[test]
    fn texts_are_wrapped_at_spaces() {
        let wrap = |text, indent, width, lines| {
            let wrapped = wrap(text, indent, Layout { width, lines, more: "look elsewhere" });
            anstream::adapter::strip_str(&wrapped).to_string()
        };
        assert_eq!(wrap("one two three\n\nfour", "  ", 10, 10), "  one two\n  three\n\n  four\n");
        assert_eq!(wrap("abcdefghij k", "", 4, 9), "abcd\nefgh\nij k\n");
        assert_eq!(wrap("a\nb\nc\ndé", "", 8, 2), "a\nb\n… 2 more lines, 3 characters: look elsewhere\n");
        assert_eq!(wrap("a\nb\nc", "", 8, 2), "a\nb\nc\n");
    }

    #[test]
    fn columns_are_aligned() {
        let rows =
            [["a".to_owned(), "bé".to_owned(), "c".to_owned()], ["aaa".to_owned(), String::new(), String::new()]];
        assert_eq!(table(&rows), "a    bé  c\naaa\n");
    }

    #[test]
    fn json_is_indented_and_otherwise_as_it_was() {
        let json = r#"{"b":[1.0,{"a":"x\",{"}],"a":[],"c":{}}"#;
        let wanted =
            "{\n  \"b\": [\n    1.0,\n    {\n      \"a\": \"x\\\",{\"\n    }\n  ],\n  \"a\": [],\n  \"c\": {}\n}";
        assert_eq!(pretty_json(json), wanted);
    }

    #[test]
    fn times_are_short() {
        assert_eq!(time(Timestamp::from_micros(1_500_000)), "1970-01-01 00:00:01");
    }
}
