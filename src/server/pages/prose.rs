//! What was said as people read it: Markdown, of which a browser obeys and loads nothing.
//!
//! What is written here are tags of a fixed set: no HTML of the text becomes HTML, pictures are links, and a link leads to the
//! web or to mail, or is none.

use pulldown_cmark::{Alignment, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::html::escape;

/// What is longer is shown as it is written.
const LONGEST: usize = 64 * 1024;
/// What is nested deeper is shown as it is written.
const DEEPEST: usize = 24;
/// Where links may lead.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// A text as HTML; `None` if it is shown as it is written. Cost: its length.
pub(super) fn prose(text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return None;
    }
    let (mut depth, mut is_too_deep) = (0_usize, false);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events = Parser::new_ext(text, options).map(|event| {
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_too_deep |= depth > DEEPEST;
        plain(event)
    });
    let mut made = String::with_capacity(text.len() + text.len() / 4);
    html::push_html(&mut made, events);
    (!is_too_deep).then_some(made)
}

/// What a part of a text is on a page: HTML is text, pictures are links, and lines end where they were ended.
fn plain(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) | Event::Text(text) => Event::InlineHtml(escape(&text).into()),
        Event::Code(text) => Event::InlineHtml(format!("<code>{}</code>", escape(&text)).into()),
        Event::SoftBreak => Event::HardBreak,
        Event::TaskListMarker(is_done) => Event::Text(CowStr::Borrowed(if is_done { "☑ " } else { "☐ " })),
        // The outline of the page is that of its messages.
        Event::Start(Tag::Heading { .. }) => Event::Html(CowStr::Borrowed("<p class=\"heading\">")),
        Event::End(TagEnd::Heading(_)) => Event::Html(CowStr::Borrowed("</p>\n")),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        // A style in a page does not count.
        Event::Start(Tag::Table(columns)) => Event::Start(Tag::Table(vec![Alignment::None; columns.len()])),
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Event::InlineHtml(link(&dest_url).into())
        }
        Event::End(TagEnd::Link | TagEnd::Image) => Event::InlineHtml(CowStr::Borrowed("</a>")),
        other => other,
    }
}

/// The beginning of a link; of one that leads nowhere, if a browser would do something else than to go there.
fn link(address: &str) -> String {
    if !SCHEMES.iter().any(|scheme| address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
    {
        return "<a>".to_owned();
    }
    format!("<a href=\"{}\" target=\"_blank\" rel=\"noopener noreferrer nofollow external\">", escape(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_people_read_is_left() {
        let table = [
            ("a *b* **c** `d`", "<p>a <em>b</em> <strong>c</strong> <code>d</code></p>\n"),
            ("one\ntwo", "<p>one<br />\ntwo</p>\n"),
            ("# Title\n\ntext", "<p class=\"heading\">Title</p>\n<p>text</p>\n"),
            ("- [ ] a\n- [x] b", "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>\n"),
            ("3. c", "<ol start=\"3\">\n<li>c</li>\n</ol>\n"),
            ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>\n"),
            ("a<b onclick=x>", "<p>a&lt;b onclick=x&gt;</p>\n"),
            ("[a](javascript:x)", "<p><a>a</a></p>\n"),
            ("[a](/pages)", "<p><a>a</a></p>\n"),
            (
                "![a](http://x/y)",
                "<p><a href=\"http://x/y\" target=\"_blank\" rel=\"noopener noreferrer nofollow external\">a</a></p>\n",
            ),
            ("\"a\" 'b'", "<p>&quot;a&quot; &#39;b&#39;</p>\n"),
            ("a\u{202e}b", "<p>a\\u{202e}b</p>\n"),
            (
                "[a](HTTPS://x/?a=\"b)",
                "<p><a href=\"HTTPS://x/?a=&quot;b\" target=\"_blank\" rel=\"noopener noreferrer nofollow external\">a</a></p>\n",
            ),
            ("[a](data:text/html,x) <x@y.z>", "<p><a>a</a> <a>x@y.z</a></p>\n"),
            (
                "|a|\n|:-:|\n|b|",
                "<table><thead><tr><th>a</th></tr></thead><tbody>\n<tr><td>b</td></tr>\n</tbody></table>\n",
            ),
            ("```rust\na < b\n```", "<pre><code class=\"language-rust\">a &lt; b\n</code></pre>\n"),
        ];
        for (text, html) in table {
            assert_eq!(prose(text).as_deref(), Some(html), "{text}");
        }
    }

    #[test]
    fn what_would_cost_more_than_its_size_is_shown_as_it_is_written() {
        assert_eq!(prose(&">".repeat(100_000)), None);
        assert_eq!(prose(&"a".repeat(LONGEST + 1)), None);
        for text in ["*", "[", "![", "`", "<", "|", "~", "_a ", "[a]: b\n", "\\", "&"] {
            assert!(prose(&text.repeat(LONGEST / text.len())).is_some(), "{text}");
        }
    }
}
