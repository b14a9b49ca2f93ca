//! The file that a store's URL names: the URLs of the clusters, one a line.

use std::fs;

use crate::error::{Error, Result};
use crate::postgres::is_postgres;

const SCHEME: &str = "shards:";

/// Whether a URL names a list of clusters.
pub(crate) fn is_sharded(url: &str) -> bool {
    url.starts_with(SCHEME)
}

/// The URLs of the clusters, in the order of their numbers.
pub(super) fn read(url: &str) -> Result<Vec<String>> {
    let path = url.strip_prefix(SCHEME).unwrap_or(url);
    let path = path.strip_prefix("//").unwrap_or(path);
    let text = fs::read_to_string(path).map_err(Error::io(format!("read the list of clusters {path}")))?;
    parse(path, &text)
}

/// A line may hold a password: no error quotes it.
fn parse(path: &str, text: &str) -> Result<Vec<String>> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut urls: Vec<String> = Vec::new();
    for (number, line) in lines {
        let problem = |problem: &str| Error::InvalidInput(format!("{path}, line {number}: {problem}"));
        if !is_postgres(line) {
            return Err(problem("expected the URL of a cluster, postgres://USER:PASSWORD@HOST:PORT/DATABASE"));
        }
        if urls.iter().any(|url| url == line) {
            return Err(problem("this cluster is in the list already"));
        }
        urls.push(line.to_owned());
    }
    if urls.is_empty() {
        return Err(Error::InvalidInput(format!("{path} lists no cluster: write the URL of one into each line")));
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_cluster_a_line() {
        let list = "# two clusters\n\npostgres://a@one/chats\n  postgres://b:secret@two/chats?pool=4  \n";
        let urls = parse("list", list).unwrap();
        assert_eq!(urls, ["postgres://a@one/chats", "postgres://b:secret@two/chats?pool=4"]);
    }

    #[test]
    fn what_is_no_list_is_reported_by_line_and_without_passwords() {
        for (text, said) in [
            ("# nothing\n", "lists no cluster"),
            ("postgres://one/a\nmysql://ada:secret@two/b\n", "line 2"),
            ("postgres://x:secret@one/a\n\npostgres://x:secret@one/a\n", "line 3: this cluster is in the list already"),
        ] {
            let error = parse("list", text).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("secret"), "{error}");
        }
    }
}
