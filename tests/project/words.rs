//! The words of the project are plain: this list has those that crept in, each with its cure.

use std::fs;
use std::path::{Path, PathBuf};

/// A word that readers stumbled over, and what to write.
const WORDS: &[(&str, &str)] = &[
    ("behind", "after; past; with; because of"),
    ("told", "reported; stated; written as"),
    ("tells", "reports; states; has"),
    ("anew", "again"),
    ("stands", "is; comes"),
    ("lies", "is"),
    ("whoever", "the thread, the caller: name it"),
    ("thereof", "of it"),
    ("therein", "in it"),
    ("hereby", "leave it out"),
    ("upon", "on; after"),
    ("shall", "will; must"),
];

/// Where such a word is right: the file's end, and words around it.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("tests/project/words.rs", ""),
    // What others wrote, or what people say in conversations.
    ("benches/provider/agent.rs", "I shall look."),
    ("src/docs/transcript.md", "I shall look."),
    ("src/store/writer.rs", "I shall "),
];

/// The files that are checked. Tests have conversations, in which people say anything.
const ROOTS: &[&str] = &["README.md", "benches", ".ci", "src"];

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else {
        found.push(path.to_owned());
    }
}

/// Comments that are wider than an editor shows beside other windows are not read. Rows of tables cannot be parted.
#[test]
fn comments_are_narrow() {
    const WIDTH: usize = 132;
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let mut wide = Vec::new();
    for path in found.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(&path).unwrap();
        let is_wide =
            |line: &&str| line.trim_start().starts_with("//") && line.chars().count() > WIDTH && !line.contains("/ | ");
        wide.extend(text.lines().filter(is_wide).map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert!(wide.is_empty(), "wider than {WIDTH} characters:\n{}", wide.join("\n"));
}

#[test]
fn words_are_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    ROOTS.iter().for_each(|name| files(&root.join(name), &mut found));
    let mut problems = Vec::new();
    for path in found {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let file = path.strip_prefix(root).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let is_excepted = |(name, words): &(&str, &str)| file.ends_with(name) && line.contains(words);
            if EXCEPTIONS.iter().any(is_excepted) {
                continue;
            }
            let lower = line.to_lowercase();
            for word in lower.split(|c: char| !c.is_alphanumeric() && c != '_') {
                if let Some((word, cure)) = WORDS.iter().find(|(listed, _)| *listed == word) {
                    problems.push(format!(
                        "{}:{number}: \"{word}\": write {cure}\n    {}",
                        file.display(),
                        line.trim()
                    ));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{} places\n{}", problems.len(), problems.join("\n"));
}
