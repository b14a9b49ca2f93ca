use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use conversation_store::model::Timestamp;
use conversation_store::server::{Key, KeyFile, Scope};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{Output, note};
use super::text;

const EXAMPLES: &str = "\
Examples:
  convo keys create --keys keys.json --owner ada
  convo keys create --keys keys.json --owner ada --scopes read --expires 2027-01-01
  convo keys list --keys keys.json
  convo keys revoke key_0123456789ab --keys keys.json

`create` prints only the secret, on stdout, once: the file has only its hash. Scopes: read, append, delete, admin. A \
server reads the file again within two seconds after it changes.";

/// Create, list and revoke the keys of a server
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create a key, and print its secret
    Create {
        /// The file of keys; it is created if it does not exist
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
        /// What the key permits
        #[arg(long, value_delimiter = ',', default_value = "read,append,delete", value_parser = scope())]
        scopes: Vec<Scope>,
        /// When the key expires: a date (its beginning, UTC), or a time as RFC 3339
        #[arg(long, value_name = "DATE", value_parser = time)]
        expires: Option<Timestamp>,
    },
    /// List the keys, without their secrets
    List {
        /// The file of keys
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
    },
    /// Revoke a key
    Revoke {
        /// The key's id, as `list` prints it
        id: String,
        /// The file of keys
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
    },
}

/// A key, as it is printed.
#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    owner: &'a str,
    scopes: Vec<&'static str>,
    created_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<&'a str>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    match &args.action {
        Action::Create { keys, scopes, expires } => {
            let owner = location.owner().ok_or_else(|| {
                Failure::usage("the key needs an owner")
                    .with_hint("--owner NAME: the key opens the conversations of NAME")
            })?;
            let (key, secret) = KeyFile::new(keys).create(owner, scopes, *expires)?;
            output.verbatim(&format!("{secret}\n"))?;
            note(&format!("{} of {owner}: this secret is not shown again", key.id));
        }
        Action::List { keys } => {
            let keys = KeyFile::new(keys).list()?;
            if output.is_text() {
                output.text(&table(&keys))?;
            } else {
                keys.iter().try_for_each(|key| output.json(&shown(key)))?;
            }
        }
        Action::Revoke { id, keys } => {
            let key = KeyFile::new(keys).revoke(id).map_err(|error| {
                Failure::from(error).with_hint(format!("`convo keys list --keys {}` shows the keys", keys.display()))
            })?;
            output.result(&shown(&key), || format!("{} of {} is revoked", key.id, text::printable(&key.owner)))?;
        }
    }
    Ok(Exit::Done)
}

fn shown(key: &Key) -> Shown<'_> {
    Shown {
        id: &key.id,
        owner: &key.owner,
        scopes: key.scopes.iter().map(|scope| scope.as_str()).collect(),
        created_at: &key.created_at,
        expires_at: key.expires_at.as_deref(),
    }
}

fn table(keys: &[Key]) -> String {
    if keys.is_empty() {
        return "no keys".to_owned();
    }
    let heads = ["KEY", "OWNER", "SCOPES", "EXPIRES"].map(str::to_owned);
    let row = |key: &Key| {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        let expires = key.expires_at.clone().unwrap_or_else(|| "never".to_owned());
        [key.id.clone(), text::cut(&key.owner, 40), scopes.join(","), expires]
    };
    text::table(&std::iter::once(heads).chain(keys.iter().map(row)).collect::<Vec<_>>())
}

fn scope() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(Scope::ALL.map(Scope::as_str))
        .try_map(|name| Scope::from_name(&name).ok_or("no such scope"))
}

/// A date means its beginning.
fn time(text: &str) -> Result<Timestamp, String> {
    let moment = text.parse::<Timestamp>().or_else(|_| format!("{text}T00:00:00Z").parse());
    moment.map_err(|_| "expected a date such as 2027-01-01, or an RFC 3339 time".to_owned())
}
