//! The tokens that answers took.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use conversation_store::model::{Body, Chunk, FinishReason, Json, Message, Metadata, Role, Timestamp};
use conversation_store::provider::Event;
use conversation_store::{Begun, StoreOptions, Usage, UsageBy, UsageQuery};

use crate::place::Place;
use crate::said::user;

crate::tests![
    each_answer_counts_once_wherever_it_is_shown,
    what_is_counted_apart_has_rows_in_order,
    errors_are_counted_by_kind_and_answers_without_counts_apart,
];

const DAY: i64 = 86_400_000_000;

fn counts(input: u64, output: u64) -> Json {
    Json::new(format!(r#"{{"prompt_tokens":{input},"completion_tokens":{output}}}"#)).unwrap()
}

fn answer(model: &str, input: u64) -> Message {
    let mut message = Message::assistant([Chunk::text("Hi!")]);
    message.metadata.model = Some(model.to_owned());
    message.usage = Some(counts(input, 1));
    message
}

fn sums(rows: &[Usage]) -> Vec<(u64, u64, u64)> {
    rows.iter().map(|row| (row.answers, row.tokens.input, row.tokens.output)).collect()
}

fn each_answer_counts_once_wherever_it_is_shown(place: &Place) {
    let store = place.store();
    let all = UsageQuery::new();
    assert_eq!(store.usage(&all).unwrap(), []);
    store.append("chat", &[user("hello"), answer("m", 10), user("and now?"), answer("m", 200)]).unwrap();
    // A fork has the first answer, and one of its own. What is hidden was paid for.
    store.fork_to("chat", Some(2), "fork").unwrap();
    store.append("fork", &[answer("m", 3_000)]).unwrap();
    store.rewind("chat", 2).unwrap();
    assert_eq!(sums(&store.usage(&all).unwrap()), [(3, 3_210, 3)]);
    // What a model writes as it comes has its model at the beginning and its counts at the end.
    let metadata = Metadata { model: Some("streamed".to_owned()), ..Metadata::default() };
    let begun = store.begin_with("chat", Role::Assistant, metadata, &conversation_store::AppendOptions::new());
    let Begun::Writer(mut writer) = begun.unwrap() else { panic!("no writer") };
    writer.push(0, Chunk::text("Hi")).unwrap();
    writer.ingest([Event::Finish { reason: Some(FinishReason::Stop), usage: Some(counts(40_000, 1)) }]).unwrap();
    let rows = store.usage(&UsageQuery::new().with_by([UsageBy::Model])).unwrap();
    assert_eq!(rows.iter().map(|row| row.model.as_deref().unwrap()).collect::<Vec<_>>(), ["m", "streamed"]);
    assert_eq!(sums(&rows), [(3, 3_210, 3), (1, 40_000, 1)]);
    store.delete("fork").unwrap();
    assert_eq!(sums(&store.usage(&all).unwrap()), [(3, 40_210, 3)]);
}

fn what_is_counted_apart_has_rows_in_order(place: &Place) {
    let clock = Arc::new(AtomicI64::new(0));
    let now = Arc::clone(&clock);
    let options = StoreOptions::new().with_clock(move || Timestamp::from_micros(now.load(Ordering::Relaxed)));
    let store = place.store_with(&options);
    for (day, name, model, input) in
        [(1, "a", "m-2", 1), (1, "b", "m-1", 20), (2, "a", "m-1", 300), (3, "b", "m-1", 4_000)]
    {
        clock.store(day * DAY, Ordering::Relaxed);
        store.append(name, &[answer(model, input)]).unwrap();
    }
    let rows = store.usage(&UsageQuery::new().with_by([UsageBy::Model, UsageBy::Day])).unwrap();
    let named: Vec<_> = rows.iter().map(|row| (row.day.as_deref().unwrap(), row.model.as_deref().unwrap())).collect();
    assert_eq!(named, [("1970-01-02", "m-1"), ("1970-01-02", "m-2"), ("1970-01-03", "m-1"), ("1970-01-04", "m-1")]);
    assert_eq!(rows.iter().map(|row| row.tokens.input).collect::<Vec<_>>(), [20, 1, 300, 4_000]);
    let mut query = UsageQuery::new().with_since(Timestamp::from_micros(2 * DAY));
    assert_eq!(sums(&store.usage(&query).unwrap()), [(2, 4_300, 2)]);
    query.until = Some(Timestamp::from_micros(3 * DAY));
    assert_eq!(sums(&store.usage(&query).unwrap()), [(1, 300, 1)]);
    assert_eq!(store.usage(&query.clone().with_owner("ada")).unwrap(), []);
    query.tags.push("work".to_owned());
    assert_eq!(store.usage(&query).unwrap(), []);
    let by = store.usage(&UsageQuery::new().with_by([UsageBy::Conversation])).unwrap();
    let mut found: Vec<_> = by.iter().map(|row| (row.conversation.unwrap(), row.tokens.input)).collect();
    found.sort_by_key(|(_, input)| *input);
    let [a, b] = ["a", "b"].map(|name| store.describe(name).unwrap().id);
    assert_eq!(found, [(a, 301), (b, 4_020)]);
}

fn errors_are_counted_by_kind_and_answers_without_counts_apart(place: &Place) {
    let store = place.store();
    let failed = |model: &str, code: Option<&str>| {
        let body = Body::Error { message: "no".to_owned(), code: code.map(str::to_owned) };
        let mut message = Message::assistant([Chunk::text("I"), body.into()]);
        message.metadata.model = Some(model.to_owned());
        message
    };
    let [long, cut] = [101, 100].map(|length| "x".repeat(length));
    store
        .append("chat", &[user("hello"), failed("m", Some("529")), failed("m", Some("529")), answer("m", 10)])
        .unwrap();
    store.append("chat", &[failed("n", None), failed("n", Some(&long))]).unwrap();
    store.fork_to("chat", None, "fork").unwrap();
    let rows = store.usage(&UsageQuery::new().with_by([UsageBy::Model, UsageBy::Error])).unwrap();
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            (row.model.as_deref().unwrap(), row.error.as_deref().unwrap(), row.answers, row.uncounted, row.errors)
        })
        .collect();
    let wanted = [
        ("m", "", 1, 2, 0),
        ("m", "529", 0, 0, 2),
        ("n", "", 0, 2, 0),
        ("n", "unknown", 0, 0, 1),
        ("n", &*cut, 0, 0, 1),
    ];
    assert_eq!(found, wanted);
    // An answer that was cut off is one, and an error, of the model that began it.
    let metadata = Metadata { model: Some("streamed".to_owned()), ..Metadata::default() };
    let begun = store.begin_with("cut", Role::Assistant, metadata, &conversation_store::AppendOptions::new());
    let Begun::Writer(mut writer) = begun.unwrap() else { panic!("no writer") };
    writer.push(0, Chunk::text("Once upon")).unwrap();
    drop(writer);
    store.sync().unwrap();
    let rows = store.usage(&UsageQuery::new().with_by([UsageBy::Model, UsageBy::Error])).unwrap();
    let streamed = rows.iter().filter(|row| row.model.as_deref() == Some("streamed"));
    let streamed: Vec<_> = streamed.map(|row| (row.error.as_deref().unwrap(), row.uncounted, row.errors)).collect();
    assert_eq!(streamed, [("", 1, 0), ("interrupted", 0, 1)]);
    let all = store.usage(&UsageQuery::new()).unwrap();
    assert_eq!((all[0].answers, all[0].uncounted, all[0].errors), (1, 5, 5));
}
