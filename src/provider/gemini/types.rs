//! The official types of a content (google-genai 3.4.0, `Content`). Every field may be null or absent.

use crate::provider::check::shape::Type::{AnyObject, Array, Bool, Null, Object, String};
use crate::provider::check::shape::{Shape, Type, optional};

const TEXT: &[Type] = &[String, Null];
const FLAG: &[Type] = &[Bool, Null];
const ANY_OBJECT: &[Type] = &[AnyObject, Null];

pub(super) static CONTENT: Shape =
    Shape(&[optional("parts", &[Array(&[Object(&PART)]), Null]), optional("role", TEXT)]);

static PART: Shape = Shape(&[
    optional("audioMetadata", ANY_OBJECT),
    optional("audioTranscription", ANY_OBJECT),
    optional("codeExecutionResult", &[Object(&CODE_RESULT), Null]),
    optional("documentMetadata", ANY_OBJECT),
    optional("executableCode", &[Object(&CODE), Null]),
    optional("fileData", &[Object(&FILE), Null]),
    optional("functionCall", &[Object(&CALL), Null]),
    optional("functionResponse", &[Object(&RESPONSE), Null]),
    optional("inlineData", &[Object(&BLOB), Null]),
    optional("mediaProcessing", TEXT),
    optional("mediaResolution", ANY_OBJECT),
    optional("partMetadata", ANY_OBJECT),
    optional("speechMetadata", ANY_OBJECT),
    optional("spreadsheetMetadata", ANY_OBJECT),
    optional("text", TEXT),
    optional("thought", FLAG),
    optional("thoughtSignature", TEXT),
    optional("toolCall", &[Object(&TOOL_CALL), Null]),
    optional("toolResponse", &[Object(&TOOL_RESPONSE), Null]),
    optional("videoMetadata", ANY_OBJECT),
]);
static BLOB: Shape = Shape(&[optional("data", TEXT), optional("displayName", TEXT), optional("mimeType", TEXT)]);
static FILE: Shape = Shape(&[optional("displayName", TEXT), optional("fileUri", TEXT), optional("mimeType", TEXT)]);
static CODE: Shape = Shape(&[optional("code", TEXT), optional("id", TEXT), optional("language", TEXT)]);
static CODE_RESULT: Shape = Shape(&[optional("id", TEXT), optional("outcome", TEXT), optional("output", TEXT)]);

static CALL: Shape = Shape(&[
    optional("args", ANY_OBJECT),
    optional("id", TEXT),
    optional("name", TEXT),
    optional("partialArgs", &[Array(&[AnyObject]), Null]),
    optional("willContinue", FLAG),
]);
static RESPONSE: Shape = Shape(&[
    optional("id", TEXT),
    optional("name", TEXT),
    optional("parts", &[Array(&[Object(&RESPONSE_PART)]), Null]),
    optional("response", ANY_OBJECT),
    optional("scheduling", TEXT),
    optional("willContinue", FLAG),
]);
static RESPONSE_PART: Shape = Shape(&[
    optional("audioMetadata", ANY_OBJECT),
    optional("documentMetadata", ANY_OBJECT),
    optional("fileData", &[Object(&FILE), Null]),
    optional("inlineData", &[Object(&BLOB), Null]),
    optional("mediaProcessing", TEXT),
    optional("mediaResolution", ANY_OBJECT),
    optional("spreadsheetMetadata", ANY_OBJECT),
    optional("videoMetadata", ANY_OBJECT),
]);
static TOOL_CALL: Shape = Shape(&[optional("args", ANY_OBJECT), optional("id", TEXT), optional("toolType", TEXT)]);
static TOOL_RESPONSE: Shape =
    Shape(&[optional("id", TEXT), optional("response", ANY_OBJECT), optional("toolType", TEXT)]);
