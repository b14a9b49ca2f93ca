//! Is this request valid? A text that is not JSON is refused, with the place.

use serde_json::{Map, Value};

use super::finding::Finding;
use super::findings::{DialectRules, Findings};
use super::not_json::NotJson;
use crate::json;
use crate::provider::target::Target;

/// Judges a request by the rules of its wire and dialect, without asking the provider.
///
/// `json` is a whole request, or just the array of its messages. Hard findings come first. Otherwise they are in the order in
/// which the request is read. There are at most a thousand of each rule and level, and the last of these says how many more
/// there are. An accepted request has no finding that is hard or `hard?`. What cannot be known from the text (does the image
/// exist, is the context too long, is a signature genuine) is not judged. Lone surrogate escapes, which no Rust string can
/// hold, are findings, not errors.
///
/// Costs one parse and a walk over the result: linear in the length of the text.
///
/// # Errors
///
/// [`NotJson`] if the text is not JSON, or nested deeper than 127 levels.
///
/// ```
/// use conversation_store::provider::{Target, check};
///
/// let request = r#"[{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "c1", "content": "42"}]"#;
/// let findings = check(Target::OPENAI_CHAT, request)?;
/// assert_eq!((findings[0].rule, findings[0].place.as_str()), ("OC-08", "messages[1]"));
/// # Ok::<(), conversation_store::provider::NotJson>(())
/// ```
pub fn check(target: Target, json: &str) -> Result<Vec<Finding>, NotJson> {
    let wire = target.wire();
    let (text, mark) = json::mark_lone_surrogates(json);
    let request = match json::value(&text)? {
        messages @ Value::Array(_) => Value::Object(Map::from_iter([(wire.messages.to_owned(), messages)])),
        request => request,
    };
    let dialect = target.dialect().map(|dialect| DialectRules {
        overrides: &dialect.overrides,
        parameters: (wire.parameters, dialect.parameters),
    });
    let mut findings = Findings::of(dialect);
    (wire.check)(target, &request, &mut findings);
    if let Some(mark) = mark {
        let problem = "string holds a lone surrogate escape: half a character";
        json::find_marked(&request, mark, "", &mut |place| findings.push(wire.surrogates.at(place, problem)));
    }
    if let Some(dialect) = target.dialect() {
        findings.take_over();
        (dialect.check)(&request, &mut findings);
    }
    let mut findings = findings.into_kept();
    findings.sort_by_key(|finding| finding.level);
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_an_error_with_its_place() {
        let error = check(Target::OPENAI_CHAT, "{\"messages\":\n [\"\\ud83d\",,]}").map(|_| ());
        let wanted = NotJson { line: 2, column: 12, message: "expected value".to_owned() };
        assert_eq!(error, Err(wanted.clone()));
        assert_eq!(wanted.to_string(), "not JSON: expected value at line 2, column 12");
        assert!(check(Target::OPENAI_CHAT, &"[".repeat(200)).is_err());
        assert!(check(Target::OPENAI_CHAT, "").is_err());
    }

    #[test]
    fn any_number_of_json_is_read() -> Result<(), NotJson> {
        let request = |number: &str| format!(r#"{{"messages":[{{"role":"user","content":"hi"}}],"top_p":{number}}}"#);
        for number in ["1e999", "-1E+400", "0.1234567890123456789", "-0", "1e-999", &"9".repeat(400)] {
            let found: Vec<_> = check(Target::OPENAI_CHAT, &request(number))?.into_iter().map(|f| f.rule).collect();
            let large = check(Target::OPENAI_CHAT, &request("1e308"))?.into_iter().map(|f| f.rule);
            assert!(found.is_empty() || found == large.collect::<Vec<_>>(), "{number}: {found:?}");
        }
        for number in ["01e999", "1.e999", "+1e999", "1e999x", "NaN"] {
            assert!(check(Target::OPENAI_CHAT, &request(number)).is_err(), "{number}");
        }
        Ok(())
    }

    #[test]
    fn lone_surrogates_are_found_in_strings_and_keys() -> Result<(), NotJson> {
        let request = r#"{"messages":[{"role":"user","content":"a\ud83d \ud83d\ude00"}],"metadata":{"\udfff":"é"}}"#;
        let found = check(Target::OPENAI_CHAT, request)?;
        let places: Vec<_> = found.iter().map(|finding| (finding.rule, finding.place.as_str())).collect();
        assert_eq!(places, [("OC-32", "messages[0].content"), ("OC-32", "metadata.<key>")]);
        Ok(())
    }
}
