//! The tools of a request that goes to another wire.

use std::borrow::Cow;

use super::settings::BESIDE_TOOLS;
use crate::history::ReportLine;
use crate::history::report::Fact;
use crate::json::fields::Fields;
use crate::provider::WIRES;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::tools::Tool;
use crate::provider::read::declarations::declared;
use crate::provider::target::Target;

/// The options with the request's tools, unless they have their own, and lines for what is left out.
pub(super) fn crossing<'a>(
    from: Target,
    rest: &mut Fields<'_>,
    options: &'a PromptOptions,
) -> (Cow<'a, PromptOptions>, Vec<ReportLine>) {
    let field = from.wire().tools.field;
    let found = rest.peek(field).filter(|_| options.tools.is_empty()).and_then(|tools| declared(tools, WIRES));
    let Some(found) = found else { return (Cow::Borrowed(options), Vec::new()) };
    rest.take(field);
    let (mut tools, mut lost) = (Vec::<Tool>::new(), Vec::new());
    for (place, tool) in found {
        let tool = tool.and_then(|tool| {
            let is_known = tools.iter().any(|other| other.name == tool.name);
            if is_known { Err("another one has its name") } else { Ok(tool) }
        });
        match tool {
            Ok(tool) => tools.push(tool),
            Err(problem) => {
                let place = format!("{field}{place}");
                if place.split_once('.') == Some(BESIDE_TOOLS) {
                    continue;
                }
                lost.push(ReportLine::new(Fact::ToolUndeclared { name: &place, problem }).at(&place));
            }
        }
    }
    (Cow::Owned(options.clone().with_tools(tools)), lost)
}
