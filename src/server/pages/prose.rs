//! What was said as people read it: Markdown, of which a browser obeys and loads nothing.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

use crate::html::visible;

/// What is longer is shown as it is written.
const LONGEST: usize = 64 * 1024;
/// What is nested deeper is shown as it is written.
const DEEPEST: usize = 24;

/// What is left of HTML, whatever it was made of.
static HARMLESS: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::empty();
    builder
        .tags(HashSet::from([
            "a",
            "blockquote",
            "br",
            "code",
            "del",
            "em",
            "hr",
            "li",
            "ol",
            "p",
            "pre",
            "strong",
            "table",
            "tbody",
            "td",
            "th",
            "thead",
            "tr",
            "ul",
        ]))
        .tag_attributes(HashMap::from([("a", HashSet::from(["href", "title"])), ("ol", HashSet::from(["start"]))]))
        .set_tag_attribute_values(HashMap::from([("a", HashMap::from([("target", "_blank")]))]))
        .allowed_classes(HashMap::from([("p", HashSet::from(["heading"]))]))
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow external"));
    builder
});

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
    for event in events {
        if let Event::End(TagEnd::Heading(_)) = event {
            made.push_str("</p>\n");
        } else {
            html::push_html(&mut made, std::iter::once(event));
        }
    }
    (!is_too_deep).then(|| HARMLESS.clean(&made).to_string())
}

/// What a part of a text is on a page: HTML is text, pictures are links, and lines end where they were ended.
fn plain(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) | Event::Text(text) => Event::Text(shown(text)),
        Event::Code(text) => Event::Code(shown(text)),
        Event::SoftBreak => Event::HardBreak,
        Event::TaskListMarker(is_done) => Event::Text(CowStr::Borrowed(if is_done { "☑ " } else { "☐ " })),
        // The outline of the page is that of its messages.
        Event::Start(Tag::Heading { .. }) => Event::Html(CowStr::Borrowed("<p class=\"heading\">")),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { dest_url, title, id, .. }) => {
            Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, title, id })
        }
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        other => other,
    }
}

fn shown(text: CowStr<'_>) -> CowStr<'_> {
    match visible(&text) {
        Some(visible) => CowStr::from(visible),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_people_read_is_left() {
        let table = [
            ("a *b* **c** `d`", "<p>a <em>b</em> <strong>c</strong> <code>d</code></p>\n"),
            ("one\ntwo", "<p>one<br>\ntwo</p>\n"),
            ("# Title\n\ntext", "<p class=\"heading\">Title</p>\n<p>text</p>\n"),
            ("- [ ] a\n- [x] b", "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>\n"),
            ("3. c", "<ol start=\"3\">\n<li>c</li>\n</ol>\n"),
            ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>\n"),
            ("a<b onclick=x>", "<p>a&lt;b onclick=x&gt;</p>\n"),
            ("[a](javascript:x)", "<p><a target=\"_blank\" rel=\"noopener noreferrer nofollow external\">a</a></p>\n"),
            ("[a](/pages)", "<p><a target=\"_blank\" rel=\"noopener noreferrer nofollow external\">a</a></p>\n"),
            (
                "![a](http://x/y)",
                "<p><a href=\"http://x/y\" target=\"_blank\" rel=\"noopener noreferrer nofollow external\">a</a></p>\n",
            ),
            ("a\u{202e}b", "<p>a\\u{202e}b</p>\n"),
            ("```rust\na < b\n```", "<pre><code>a &lt; b\n</code></pre>\n"),
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
