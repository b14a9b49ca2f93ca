//! How what is printed looks, where colours are wanted.

use anstyle::{AnsiColor, Style};
use conversation_store::model::Role;

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default();

/// The colour of a role.
pub(super) fn style_of(role: Role) -> Style {
    match role {
        Role::System => AnsiColor::Yellow.on_default().bold(),
        Role::User => AnsiColor::Green.on_default().bold(),
        Role::Assistant => AnsiColor::Cyan.on_default().bold(),
        Role::Tool => AnsiColor::Magenta.on_default().bold(),
    }
}
