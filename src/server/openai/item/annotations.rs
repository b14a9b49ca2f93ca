//! What a text cites, in OpenAI's words where they say the same. What they do not say stays as its provider wrote it.
//!
//! Sources: the types of the vendors' Python SDKs: openai 3.52.0, `ResponseOutputText`; anthropic 2.14.0, `TextCitation`;
//! botocore 1.44.8, `Citation` of `bedrock-runtime`.

use serde_json::{Map, Value, json};

use crate::model::Json;

/// The annotations of a text.
pub(crate) fn annotations_of(annotations: &Json, text: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(annotations.as_str()).unwrap_or_default();
    all.into_iter()
        .map(|annotation| match annotation {
            Value::Object(fields) => annotation_of(fields, text),
            other => other,
        })
        .collect()
}

fn annotation_of(mut fields: Map<String, Value>, text: &str) -> Value {
    let word = |name: &str| fields.get(name).and_then(Value::as_str).filter(|word| !word.is_empty());
    let web = |url: &str, title: Option<&str>| {
        let mut citation = json!({
            "type": "url_citation", "url": url, "title": title.unwrap_or(url), "start_index": 0, "end_index": text.chars().count(),
        });
        // What the source says, where the provider quotes it.
        if let (Some(cited), Value::Object(citation)) = (word("cited_text"), &mut citation) {
            citation.insert("cited_text".to_owned(), cited.into());
        }
        citation
    };
    let is_address = |source: &&str| source.starts_with("http://") || source.starts_with("https://");
    let made = match word("type") {
        Some("web_search_result_location") => word("url").map(|url| web(url, word("title"))),
        Some("search_result_location") => word("source").filter(is_address).map(|url| web(url, word("title"))),
        Some("char_location" | "page_location" | "content_block_location") => word("file_id").map(|file| {
            let name = word("document_title").unwrap_or_default();
            json!({ "type": "file_citation", "file_id": file, "filename": name, "index": text.chars().count() })
        }),
        Some(_) => None,
        // Bedrock's have no type, but a place of one kind.
        None => fields.get("location").and_then(Value::as_object).and_then(|location| {
            let web_page = location.get("web").and_then(|page| page.get("url")?.as_str());
            let found = location.get("searchResultLocation").and_then(|_| word("source")).filter(is_address);
            web_page.or(found).map(|url| web(url, word("title")))
        }),
    };
    if let Some(made) = made {
        return made;
    }
    // Chat Completions has what a citation says in an object of its own.
    if let Some(Value::Object(citation)) = fields.remove("url_citation") {
        fields.extend(citation);
    }
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_of_the_same_meaning_is_openais() {
        let web = json!({
            "type": "url_citation", "url": "https://x.test/rust", "title": "Rust", "start_index": 0, "end_index": 4,
        });
        let quoted = {
            let mut web = web.clone();
            web["cited_text"] = json!("It is.");
            web
        };
        let untitled = {
            let mut web = web.clone();
            web["title"] = json!("https://x.test/rust");
            web
        };
        let table = [
            (json!({ "type": "url_citation", "url_citation": { "url": "u", "start_index": 2 } }), {
                json!({ "type": "url_citation", "url": "u", "start_index": 2 })
            }),
            (
                json!({ "type": "web_search_result_location", "cited_text": "It is.", "url": "https://x.test/rust", "title": "Rust",
                    "encrypted_index": "Eo8B" }),
                quoted.clone(),
            ),
            (json!({ "type": "web_search_result_location", "url": "https://x.test/rust", "title": null }), untitled),
            (
                json!({ "type": "search_result_location", "cited_text": "It is.", "source": "https://x.test/rust", "title": "Rust",
                    "search_result_index": 0, "start_block_index": 0, "end_block_index": 1 }),
                quoted,
            ),
            (
                json!({ "type": "page_location", "cited_text": "It is.", "document_index": 1, "document_title": "a.pdf",
                    "start_page_number": 1, "end_page_number": 2, "file_id": "file_1" }),
                json!({ "type": "file_citation", "file_id": "file_1", "filename": "a.pdf", "index": 4 }),
            ),
            (
                json!({ "title": "Rust", "location": { "web": { "url": "https://x.test/rust", "domain": "x.test" } } }),
                web.clone(),
            ),
            (
                json!({ "title": "Rust", "source": "https://x.test/rust", "location": { "searchResultLocation": { "start": 0 } } }),
                web,
            ),
        ];
        for (given, wanted) in table {
            let found = annotations_of(&Json::new(json!([given]).to_string()).unwrap(), "Yes\u{1f600}");
            assert_eq!(found, [wanted], "{given}");
        }
    }

    #[test]
    fn what_openai_cannot_say_stays_as_it_is() {
        for given in [
            json!({ "type": "char_location", "cited_text": "a", "document_index": 0, "document_title": "b", "file_id": null }),
            json!({ "type": "search_result_location", "source": "kb/7", "title": "c" }),
            json!({ "title": "Doc", "location": { "documentChar": { "documentIndex": 0, "start": 0, "end": 15 } } }),
            json!({ "type": "file_path", "file_id": "f", "index": 1 }),
            json!("odd"),
        ] {
            assert_eq!(annotations_of(&Json::new(json!([given]).to_string()).unwrap(), "text"), [given]);
        }
    }
}
