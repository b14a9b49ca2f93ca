//! Files that mean harm, and files that are none.

use std::io::Write;

use conversation_store::Store;
use conversation_store::transfer::{Branches, ImportOptions};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use super::{assert_works, conversations, imported, messages, run, sample};
use crate::common::growth::assert_in_proportion;

fn node(id: &str, parent: Option<&str>) -> (String, Value) {
    let message = json!({"author": {"role": "user"}, "content": {"content_type": "text", "parts": [id]}});
    (id.to_owned(), json!({"id": id, "message": message, "parent": parent, "children": []}))
}

fn chatgpt(nodes: impl IntoIterator<Item = (String, Value)>) -> String {
    json!([{"id": "c", "mapping": nodes.into_iter().collect::<serde_json::Map<_, _>>()}]).to_string()
}

#[test]
fn nothing_that_is_recognised_says_what_it_looks_like() {
    for (text, wanted) in [
        ("", "it is empty"),
        ("hello there", "it is not JSON"),
        ("[1, 2]", "a list of values such as 1"),
        ("{\"apples\": 1, \"pears\": 2}", "objects with the fields apples, pears"),
        ("[{\"apples\": 1}]", "a list of objects with the fields apples"),
        ("\u{0}\u{1}\u{2}", "it is not JSON"),
        ("[{\"id\":\"c\",\"mapping\":{\"a\":", "it is cut off within its first value"),
    ] {
        let (store, run) = imported("x.json", text);
        let error = run.summary.unwrap_err().to_string();
        assert!(error.contains(wanted), "{text:?}: {error}");
        assert!(conversations(&store).is_empty());
    }
    for (bytes, wanted) in
        [(&b"\xff\xfe[\0]\0"[..], "UTF-16"), (b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")]
    {
        let (_, run) = imported("x.json", bytes);
        let error = run.summary.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn circles_and_missing_parents_are_counted() {
    let text = chatgpt([node("a", Some("c")), node("b", Some("a")), node("c", Some("b")), node("d", Some("gone"))]);
    let (store, run) = imported("x.json", text);
    let skipped = &run.conversations[0].skipped;
    assert_eq!((skipped["parents_in_a_circle"], skipped["missing_parent"]), (1, 1), "{skipped:?}");
    let all: usize = conversations(&store).into_iter().map(|id| store.load_raw(id).unwrap().len()).sum();
    assert_eq!(all, 4);
}

#[test]
fn too_many_branches_are_counted() {
    let nodes = std::iter::once(node("root", None)).chain((0..3000).map(|at| node(&format!("n{at}"), Some("root"))));
    let (store, run) = imported("x.json", chatgpt(nodes));
    let imported = &run.conversations[0];
    assert_eq!((imported.messages, imported.branches), (2, 1000));
    assert_eq!(imported.skipped["message_of_too_many_branches"], 1999);
    assert_eq!(messages(&store, "chatgpt:c").len(), 2);
}

#[test]
fn very_many_children_end() {
    assert_in_proportion("the children of a node", |count| {
        let root = std::iter::once(node("root", None));
        let nodes = root.chain((0..count).map(|at| node(&format!("n{at}"), Some("root"))));
        let dir = crate::common::tempdir().unwrap();
        std::fs::write(dir.path().join("x.json"), chatgpt(nodes)).unwrap();
        move || {
            let mut options = ImportOptions::default();
            options.branches = Branches::Current;
            let run = run(None, &dir.path().join("x.json"), &options);
            assert_eq!(run.conversations[0].skipped["message_of_another_branch"], count as u64 - 1);
        }
    });
}

#[test]
fn deep_nesting_ends() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let objects =
        format!("{}1{}", "{\"children\":[{\"messageId\":\"m\",\"text\":\"t\",\"x\":".repeat(2000), "}]}".repeat(2000));
    let tree = |inner: &str| {
        format!(
            "{{\"conversationId\":\"c\",\"messagesTree\":[{{\"messageId\":\"a\",\"text\":\"hi\",\"isCreatedByUser\":true,\"x\":{inner}}}]}}"
        )
    };
    let chat = format!(
        "[{{\"id\":\"c\",\"mapping\":{{\"a\":{{\"parent\":null,\"message\":{{\"author\":{{\"role\":\"user\"}},\"x\":{deep},\"content\":{{\"content_type\":\"text\",\"parts\":[\"hi\",{deep}]}}}}}}}}}}]"
    );
    for text in [deep.clone(), tree(&deep), tree(&objects), chat, format!("{{\"mapping\":{deep}}}")] {
        let (store, _) = imported("x.json", text);
        assert_works(&store);
    }
    // Messages within messages, as deep as a long conversation is.
    let mut text = String::new();
    for at in 0..20_000 {
        text.push_str(&format!("{{\"messageId\":\"m{at}\",\"parentMessageId\":\"m{}\",\"text\":\"t\",\"isCreatedByUser\":true,\"children\":[", at as i64 - 1));
    }
    text.push_str(&"]}".repeat(20_000));
    let (_, run) = imported("x.json", format!("{{\"conversationId\":\"c\",\"messagesTree\":[{text}]}}"));
    assert_eq!(run.conversations[0].messages, 20_000);
}

#[test]
fn one_broken_conversation_does_not_stop_the_rest() {
    let good = |id: &str| json!({"id": id, "conversations": [{"from": "human", "value": "hi"}]}).to_string();
    let text = format!("[{},{{\"conversations\":7}},{{\"conversations\" 1}},[[]],{}]", good("a"), good("b"));
    let (_, run) = imported("x.json", text);
    let summary = run.summary.unwrap();
    assert_eq!((summary.conversations, summary.failed), (2, 3));
    // Cut in the middle of the second.
    let text = format!("[{},{{\"id\":\"cut\",\"conversations\":[{{\"from\":", good("a"));
    let (_, run) = imported("x.json", text);
    assert_eq!(run.conversations[1].source_id.as_deref(), Some("cut"));
    assert_eq!(run.summary.unwrap().failed, 1);
}

pub(super) fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        zip.start_file(*name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn an_archive_is_read_and_its_pictures_with_it() {
    let text = std::fs::read(sample("chatgpt-conversations.json")).unwrap();
    let zip = zipped(&[
        ("conversations-000.json", &text),
        ("user.json", b"{\"id\": \"user-1\"}"),
        ("file_0000picnic-basket.png", b"picture"),
        ("../outside.json", &text),
        ("/etc/absolute.json", &text),
    ]);
    let (store, run) = imported("export.zip", zip);
    let summary = run.summary.unwrap();
    assert_eq!(summary.conversations, 1, "{:?}", run.notes);
    assert!(summary.skipped["path_outside_the_archive"] >= 1, "{:?}", summary.skipped);
    let branch = messages(&store, "chatgpt:00000000-0000-4000-8000-00000000c001:n-u2");
    let is_inline = |chunk: &conversation_store::model::Chunk| match &chunk.body {
        conversation_store::model::Body::Image(image) => image.url.starts_with("data:image/png;base64,"),
        _ => false,
    };
    assert!(branch.iter().flat_map(|message| &message.chunks).any(is_inline));
    assert_works(&store);
}

#[test]
fn a_zip_bomb_is_an_error() {
    let mut bomb = b"[{\"id\":\"c\",\"mapping\":{}},\"".to_vec();
    bomb.resize(320 * 1024 * 1024, b'a');
    let (_, run) = imported("bomb.zip", zipped(&[("conversations.json", &bomb)]));
    let error = run.summary.unwrap_err().to_string();
    assert!(error.contains("zip bomb"), "{error}");
}

#[test]
fn an_archive_that_is_none_is_an_error() {
    for bytes in [&b"PK\x03\x04"[..], b"PK\x05\x06 nothing", &zipped(&[("conversations.json", b"[]")])[..40]] {
        let (_, run) = imported("x.zip", bytes);
        let error = run.summary.unwrap_err().to_string();
        assert!(error.contains("not a readable archive"), "{error}");
    }
    let (_, run) = imported("x.db", b"SQLite format 3\0 and nothing else");
    let error = run.summary.unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("not a database"), "{error}");
    let store = Store::open("memory:").unwrap();
    assert!(run_missing(&store));
}

fn run_missing(store: &Store) -> bool {
    run(Some(store), std::path::Path::new("/nowhere/at/all"), &ImportOptions::default()).summary.is_err()
}
