//! Calls that the caller answers, and their outputs.

use super::messages::{OUTPUT_FILE, OUTPUT_IMAGE, TEXT};
use crate::provider::check::shape::Type::{AnyObject, Array, Null, Number, Object, OneOf, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

const STATUS: &[Type] = &[OneOf(&["in_progress", "completed", "incomplete"])];
const STATUS_OR_NULL: &[Type] = &[OneOf(&["in_progress", "completed", "incomplete"]), Null];
/// Who called: the model, or a program it wrote.
const CALLER: &[Type] = &[AnyObject, Null];
const OUTPUT: &[Type] = &[String, Array(&[Object(&TEXT), Object(&OUTPUT_IMAGE), Object(&OUTPUT_FILE)])];

pub(super) static FUNCTION_CALL: Shape = Shape(&[
    required("arguments", &[String]),
    required("call_id", &[String]),
    required("name", &[String]),
    required("type", &[OneOf(&["function_call"])]),
    optional("id", &[String]),
    optional("caller", CALLER),
    optional("namespace", &[String]),
    optional("status", STATUS),
]);
pub(super) static FUNCTION_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("output", OUTPUT),
    required("type", &[OneOf(&["function_call_output"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
    optional("name", &[String, Null]),
    optional("namespace", &[String, Null]),
    optional("status", STATUS_OR_NULL),
]);
pub(super) static CUSTOM_CALL: Shape = Shape(&[
    required("call_id", &[String]),
    required("input", &[String]),
    required("name", &[String]),
    required("type", &[OneOf(&["custom_tool_call"])]),
    optional("id", &[String]),
    optional("caller", CALLER),
    optional("namespace", &[String]),
]);
pub(super) static CUSTOM_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("output", OUTPUT),
    required("type", &[OneOf(&["custom_tool_call_output"])]),
    optional("id", &[String]),
    optional("caller", CALLER),
]);

pub(super) static COMPUTER_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("call_id", &[String]),
    required("pending_safety_checks", &[Array(&[AnyObject])]),
    required("status", STATUS),
    required("type", &[OneOf(&["computer_call"])]),
    optional("action", &[AnyObject]),
    optional("actions", &[Array(&[AnyObject])]),
]);
pub(super) static COMPUTER_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("output", &[Object(&SCREENSHOT)]),
    required("type", &[OneOf(&["computer_call_output"])]),
    optional("id", &[String, Null]),
    optional("acknowledged_safety_checks", &[Array(&[AnyObject]), Null]),
    optional("status", STATUS_OR_NULL),
]);
static SCREENSHOT: Shape = Shape(&[
    required("type", &[OneOf(&["computer_screenshot"])]),
    optional("file_id", &[String]),
    optional("image_url", &[String]),
]);

pub(super) static SHELL_CALL: Shape = Shape(&[
    required("action", &[AnyObject]),
    required("call_id", &[String]),
    required("type", &[OneOf(&["shell_call"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
    optional("environment", &[AnyObject, Null]),
    optional("status", STATUS_OR_NULL),
]);
pub(super) static SHELL_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("output", &[Array(&[Object(&COMMAND_OUTPUT)])]),
    required("type", &[OneOf(&["shell_call_output"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
    optional("max_output_length", &[Number, Null]),
    optional("status", STATUS_OR_NULL),
]);
static COMMAND_OUTPUT: Shape =
    Shape(&[required("outcome", &[AnyObject]), required("stderr", &[String]), required("stdout", &[String])]);

pub(super) static PATCH_CALL: Shape = Shape(&[
    required("call_id", &[String]),
    required("operation", &[AnyObject]),
    required("status", &[OneOf(&["in_progress", "completed"])]),
    required("type", &[OneOf(&["apply_patch_call"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
]);
pub(super) static PATCH_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("status", &[OneOf(&["completed", "failed"])]),
    required("type", &[OneOf(&["apply_patch_call_output"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
    optional("output", &[String, Null]),
]);

pub(super) static LOCAL_SHELL_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("action", &[AnyObject]),
    required("call_id", &[String]),
    required("status", STATUS),
    required("type", &[OneOf(&["local_shell_call"])]),
]);
pub(super) static LOCAL_SHELL_CALL_OUTPUT: Shape = Shape(&[
    required("id", &[String]),
    required("output", &[String]),
    required("type", &[OneOf(&["local_shell_call_output"])]),
    optional("status", STATUS_OR_NULL),
]);
