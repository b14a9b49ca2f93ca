//! Names of tools in a request's fields: where they are declared, and where tools are chosen by them.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::fields::{Fields, array, string};
use crate::provider::read::forms::ToolForm;
use crate::provider::text::is_spelling_of;

/// The field of a declaration, or of a choice, that has the name of a tool.
pub(super) const NAME: &str = "name";
/// The field of Gemini's choice that has the names of those that may be called.
const ALLOWED: &str = "allowedFunctionNames";

/// The value at a path, in the notation of `check`: `[0].function.name`.
pub(super) fn at<'a>(value: &'a RawValue, path: &str) -> Option<&'a RawValue> {
    let (mut value, mut rest) = (value, path);
    while !rest.is_empty() {
        if let Some(item) = rest.strip_prefix('[') {
            let (at, after) = item.split_once(']')?;
            value = array(value)?.get(at.parse::<usize>().ok()?).copied()?;
            rest = after;
        } else {
            let field = rest.strip_prefix('.')?;
            let (name, after) = field.split_at_checked(field.find(['.', '[']).unwrap_or(field.len()))?;
            value = Fields::of(value)?.peek(name)?;
            rest = after;
        }
    }
    Some(value)
}

/// Where a choice has this name.
pub(super) fn chosen<'a>(choice: &'a RawValue, name: &str) -> Vec<&'a RawValue> {
    let is_name = |value: &&RawValue| string(value).is_some_and(|value| value == name);
    let (mut found, mut next) = (Vec::new(), vec![choice]);
    while let Some(value) = next.pop() {
        next.extend(array(value).unwrap_or_default());
        for (key, value) in Fields::of(value).unwrap_or_default().pairs() {
            if key == NAME {
                found.extend([value].into_iter().filter(is_name));
            } else if is_spelling_of(ALLOWED, &key) {
                found.extend(array(value).unwrap_or_default().into_iter().filter(is_name));
            } else {
                next.push(value);
            }
        }
    }
    found
}

/// The names that a tool declares.
pub(super) fn declared(tool: &RawValue, form: &ToolForm) -> Vec<String> {
    let fields = Fields::of(tool).unwrap_or_default();
    let declarations = form.list.and_then(|list| array(fields.peek(list)?)).unwrap_or_else(|| vec![tool]);
    let name = |declaration: &RawValue| {
        let fields = Fields::of(declaration)?;
        let wrapped = form.wrapper.and_then(|wrapper| Fields::of(fields.peek(wrapper)?));
        string(wrapped.unwrap_or(fields).peek(NAME)?)
    };
    declarations.into_iter().filter_map(name).collect()
}

/// The text of a value with another string in these places of it.
pub(super) fn with(value: &RawValue, mut places: Vec<&RawValue>, to: &str) -> Option<String> {
    let offset = |place: &RawValue| place.get().as_ptr().addr().checked_sub(value.get().as_ptr().addr());
    places.sort_by_key(|place| offset(place));
    let (mut out, mut end) = (String::new(), 0);
    for place in places {
        let start = offset(place)?;
        out.push_str(value.get().get(end..start)?);
        out.push_str(&Value::from(to).to_string());
        end = start + place.get().len();
    }
    out.push_str(value.get().get(end..)?);
    Some(out)
}
