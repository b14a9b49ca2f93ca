//! Who says a message, by whatever name.

use super::parsed::Notes;
use crate::history::report::Fact;
use crate::json::fields::Fields;
use crate::model::Role;

/// The names of a wire's roles.
#[derive(Debug)]
pub(crate) struct RoleNames {
    /// Those of each role: the wire's own, and what others call it.
    pub(crate) known: &'static [(Role, &'static [&'static str])],
    /// Those that need no note: what is rendered has the same meaning.
    pub(crate) same: &'static [&'static str],
}

/// What every role is called.
pub(crate) const ROLES: &[(Role, &[&str])] = &[
    (Role::System, &["system", "developer"]),
    (Role::User, &["user", "human"]),
    (Role::Assistant, &["assistant", "ai", "model", "bot"]),
    (Role::Tool, &["tool", "function"]),
];

impl RoleNames {
    /// The role of this name, whatever its case.
    pub(crate) fn find(&self, name: &str) -> Option<Role> {
        let lower = name.trim().to_lowercase();
        self.known.iter().find(|(_, names)| names.contains(&lower.as_str())).map(|(role, _)| *role)
    }

    /// The role of this name, or the guess.
    pub(crate) fn role(&self, name: &str, guess: Role, notes: &mut Notes<'_>) -> Role {
        let role = self.find(name).unwrap_or(guess);
        if !self.same.contains(&name) {
            notes.push(Fact::RoleTaken { name: Some(name), taken: role });
        }
        role
    }

    /// The role that a message names, or the guess.
    pub(crate) fn take(&self, message: &mut Fields<'_>, guess: Role, notes: &mut Notes<'_>) -> Role {
        if let Some(name) = message.text("role") {
            return self.role(&name, guess, notes);
        }
        notes.push(Fact::RoleTaken { name: None, taken: guess });
        guess
    }
}
