//! Which part of the crate may know which: the direction in which data flows, read from the paths in the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Every module of src/, with the modules that it may import, besides itself. A module stands behind all that it
/// imports, so the order of the rows is the direction.
const LAYERS: &[(&str, &[&str])] = &[
    ("json", &[]),
    ("model", &["json"]),
    ("error", &["model"]),
    ("record", &["error", "json", "model"]),
    ("history", &["error", "json", "model", "record"]),
    ("log", &["error", "history", "json", "model", "record"]),
    ("backup", &["error", "log", "model", "record"]),
    ("embedded", &["backup", "error", "history", "log", "model", "record"]),
    ("remote", &["backup", "error", "history", "log", "model", "record"]),
    ("postgres", &["backup", "error", "history", "log", "model", "record"]),
    ("provider", &["error", "history", "json", "model"]),
    ("store", &["backup", "embedded", "error", "history", "json", "log", "model", "postgres", "provider", "remote"]),
    ("html", &[]),
    ("transfer", &["error", "history", "html", "json", "log", "model", "provider", "store"]),
    ("search", &["error", "history", "json", "log", "model", "store"]),
    ("mcp", &["error", "history", "json", "log", "model", "search", "store"]),
    (
        "server",
        &[
            "error", "history", "html", "json", "log", "mcp", "model", "provider", "record", "remote", "search",
            "store", "transfer",
        ],
    ),
    // The program is a user of the library, by its public interface.
    ("cli", &[]),
];

/// The roots of the library and of the program: they name everything, and hold no logic.
const ROOTS: &[&str] = &["lib", "main"];

#[test]
fn every_module_imports_only_what_it_may() {
    let exports = exports();
    let mut wrong = Vec::new();
    for (module, file, source) in sources() {
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{file}: the module {module} has no row in LAYERS"));
            continue;
        };
        for name in named_from_root(&path_of(&file), &source) {
            let imported = exports.get(&name).unwrap_or(&name);
            if *imported != module && !allowed.contains(&imported.as_str()) {
                wrong.push(format!("{file}: {module} must not import {name}, of {imported}"));
            }
        }
    }
    assert!(wrong.is_empty(), "against the direction:\n{}", wrong.join("\n"));
}

#[test]
fn the_rows_stand_in_the_direction() {
    for (at, (module, allowed)) in LAYERS.iter().enumerate() {
        for import in *allowed {
            assert!(LAYERS.iter().take(at).any(|(name, _)| name == import), "{module} imports {import}, a later row");
        }
    }
}

#[test]
fn no_files_of_a_folder_import_one_another_in_a_circle() {
    let files = Files::read();
    let circles = LAYERS.iter().map(|(folder, _)| (folder, files.circles(folder)));
    let wrong: Vec<_> = circles.filter(|(_, circles)| !circles.is_empty()).collect();
    assert!(wrong.is_empty(), "files import one another in a circle: {wrong:#?}");
}

/// A room that another one needs does not need that one. Only those of `provider` do: a target's row names what reads, checks
/// and renders for it, and these ask for what their target is.
#[test]
fn no_rooms_of_a_folder_import_one_another_in_a_circle() {
    let files = Files::read();
    assert!(!files.circles_of_rooms("provider").is_empty(), "the exception is none any more");
    let folders = LAYERS.iter().map(|(folder, _)| *folder).filter(|folder| *folder != "provider");
    let circles = folders.map(|folder| (folder, files.circles_of_rooms(folder)));
    let wrong: Vec<_> = circles.filter(|(_, circles)| !circles.is_empty()).collect();
    assert!(wrong.is_empty(), "rooms import one another in a circle: {wrong:#?}");
}

#[test]
fn circles_are_found_through_names_that_others_hand_on() {
    let of = |sources: &[(&str, &str)]| {
        let sources = sources.iter().map(|(file, source)| ((*file).to_owned(), (*source).to_owned()));
        Files::of(sources.collect()).circles("a").into_keys().collect::<Vec<_>>()
    };
    let facade = ("a/mod.rs", "mod x; mod y; pub use y::Y; use x::X;");
    // What a folder hands on stands in another file; what its mod.rs says itself is an import.
    assert_eq!(of(&[facade, ("a/x.rs", "use super::Y;"), ("a/y.rs", "")]), [""; 0]);
    assert_eq!(of(&[facade, ("a/x.rs", "use super::Y;"), ("a/y.rs", "use super::x;")]), ["a/x.rs", "a/y.rs"]);
    assert_eq!(of(&[facade, ("a/x.rs", "fn f() { super::own() }"), ("a/y.rs", "")]), ["a/mod.rs", "a/x.rs"]);
    let test = "use super::y::Y; #[cfg(test)] mod tests { use crate::a::x::X; }";
    assert_eq!(of(&[facade, ("a/x.rs", ""), ("a/y.rs", "#[cfg(test)] mod tests { use super::super::x; }")]), [""; 0]);
    assert_eq!(of(&[facade, ("a/x.rs", test), ("a/y.rs", "fn f() -> crate::a::x::X {}")]), ["a/x.rs", "a/y.rs"]);
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let table = [
        ("use crate::engine::Engine;", &["engine"][..]),
        ("use crate::{error::Result, model};", &["error", "model"]),
        ("fn f() -> crate::Result<()> { vec![crate::log::g()] }", &["Result", "log"]),
        ("use super::state::State;", &[]),
        ("use super::super::engine::Engine;", &["engine"]),
        ("mod tests { use super::super::state::State; use super::super::super::engine::Engine; }", &["engine"]),
        ("pub(super) fn f() {} pub(crate) fn g() {} pub(in crate::part) fn h() {}", &[]),
        ("use super::super::{engine, model::Json};", &["engine", "model"]),
        ("// crate::engine\n/* crate::log */ const A: &str = \"crate::store\";", &[]),
        ("use crate::*;", &["*"]),
    ];
    for (source, names) in table {
        assert_eq!(named_from_root(&["part".to_owned(), "open".to_owned()], source), names, "{source}");
    }
}

/// Module, file and text of every source file but the roots.
fn sources() -> Vec<(String, String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new("src").to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = path.strip_prefix("src").unwrap().to_str().unwrap().to_owned();
                let module = path_of(&file).swap_remove(0);
                if !ROOTS.contains(&module.as_str()) {
                    files.push((module, file, fs::read_to_string(path).unwrap()));
                }
            }
        }
    }
    assert!(files.len() > LAYERS.len());
    files
}

/// The module path of a file below src/.
fn path_of(file: &str) -> Vec<String> {
    let path = file.strip_suffix(".rs").unwrap();
    path.strip_suffix("/mod").unwrap_or(path).split('/').map(str::to_owned).collect()
}

/// What the library's root re-exports, and from which module.
fn exports() -> BTreeMap<String, String> {
    let root: Vec<_> = fs::read_to_string("src/lib.rs").unwrap().parse::<TokenStream>().unwrap().into_iter().collect();
    let mut exports = BTreeMap::new();
    for (at, token) in root.iter().enumerate() {
        let [Some(TokenTree::Ident(module)), Some(TokenTree::Punct(_)), Some(TokenTree::Punct(_)), Some(what)] =
            [1, 2, 3, 4].map(|next| root.get(at + next))
        else {
            continue;
        };
        if !matches!(token, TokenTree::Ident(word) if word == "use") {
            continue;
        }
        let names = match what {
            TokenTree::Group(names) => names.stream(),
            name => TokenStream::from(name.clone()),
        };
        for name in names {
            if let TokenTree::Ident(name) = name {
                exports.insert(name.to_string(), module.to_string());
            }
        }
    }
    assert_eq!(exports.get("Store").map(String::as_str), Some("store"));
    exports
}

/// The first name of every path that starts at the crate's root, by `crate::` or by enough `super::`, but the module's own.
fn named_from_root(path: &[String], source: &str) -> Vec<String> {
    let paths = paths(path, &source.parse::<TokenStream>().unwrap(), &|_| false);
    let there = paths.into_iter().filter(|found| !found.is_empty());
    there.map(|mut found| found.swap_remove(0)).filter(|name| path.first() != Some(name)).collect()
}

/// The files below src/, by their modules.
struct Files(BTreeMap<Vec<String>, File>);

struct File {
    name: String,
    tokens: TokenStream,
    /// The names that it hands on to others, and where they come from.
    exports: BTreeMap<String, Vec<String>>,
}

impl Files {
    fn read() -> Self {
        Self::of(sources().into_iter().map(|(_, file, source)| (file, source)).collect())
    }

    fn of(sources: Vec<(String, String)>) -> Self {
        let sources = sources.into_iter().filter(|(file, _)| !file.split('/').any(|part| part == "tests"));
        let files = sources.map(|(name, source)| {
            let (path, tokens) = (path_of(&name), without_tests(&source.parse().unwrap()));
            (path, File { name, tokens, exports: BTreeMap::new() })
        });
        let mut files = Self(files.collect());
        let exports: Vec<_> = files.0.iter().map(|(path, file)| files.uses(path, &file.tokens, true)).collect();
        for (file, found) in files.0.values_mut().zip(exports) {
            file.exports = found.into_iter().map(|path| (path.last().unwrap().clone(), path)).collect();
        }
        files
    }

    /// The paths in a file: of what it hands on, or of all else.
    fn uses(&self, path: &[String], tokens: &TokenStream, handed_on: bool) -> Vec<Vec<String>> {
        let (on, rest) = handed_on_and_rest(tokens);
        let is_child = |name: &str| self.0.contains_key(&[path, &[name.to_owned()]].concat());
        paths(path, if handed_on { &on } else { &rest }, &is_child)
    }

    /// The file that a path leads to.
    fn find(&self, path: &[String]) -> Option<&Vec<String>> {
        let mut path = path.to_vec();
        for _ in 0..self.0.len() {
            let (module, file) = (0..=path.len()).rev().find_map(|end| self.0.get_key_value(&path[..end]))?;
            match path.get(module.len()).and_then(|name| file.exports.get(name)) {
                Some(other) => path = other.clone(),
                None => return Some(module),
            }
        }
        None
    }

    /// The files of a folder that import one another in a circle, and which of these each imports.
    fn circles(&self, folder: &str) -> BTreeMap<String, BTreeSet<String>> {
        let circles = circles(self.imports(folder, usize::MAX));
        let name = |path: &[String]| self.0[path].name.clone();
        circles.iter().map(|(path, imported)| (name(path), imported.iter().map(|path| name(path)).collect())).collect()
    }

    /// The same for its rooms: its folders, and its own files.
    fn circles_of_rooms(&self, folder: &str) -> BTreeMap<String, BTreeSet<String>> {
        let name = |path: &[String]| path.join("/");
        let circles = circles(self.imports(folder, 2));
        circles.iter().map(|(path, imported)| (name(path), imported.iter().map(|path| name(path)).collect())).collect()
    }

    /// What each file of a folder imports, or each room: its path down to this depth.
    fn imports(&self, folder: &str, depth: usize) -> BTreeMap<&[String], BTreeSet<&[String]>> {
        let room = |path: &'_ [String]| path.len().min(depth);
        let mut imports: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (path, file) in self.0.iter().filter(|(path, _)| path[0] == folder) {
            let own = &path[..room(path)];
            let found = self.uses(path, &file.tokens, false);
            let found = found.iter().filter_map(|found| self.find(found)).map(|found| &found[..room(found)]);
            imports.entry(own).or_default().extend(found.filter(|found| *found != own));
        }
        imports
    }
}

/// What is in a circle, and what of it each imports.
fn circles<'a>(
    mut imports: BTreeMap<&'a [String], BTreeSet<&'a [String]>>,
) -> BTreeMap<&'a [String], BTreeSet<&'a [String]>> {
    // Who imports none of those that are left, or is imported by none, is in no circle.
    loop {
        let before = imports.len();
        let left: BTreeSet<_> = imports.keys().copied().collect();
        imports.retain(|_, imported| !imported.is_disjoint(&left));
        let imported: BTreeSet<_> = imports.values().flatten().copied().collect();
        imports.retain(|path, _| imported.contains(path));
        if imports.len() == before {
            break;
        }
    }
    let left: BTreeSet<_> = imports.keys().copied().collect();
    imports.values_mut().for_each(|imported| imported.retain(|path| left.contains(path)));
    imports
}

/// A file without its modules of tests.
fn without_tests(tokens: &TokenStream) -> TokenStream {
    let tokens: Vec<_> = tokens.clone().into_iter().collect();
    let is_tests = |at: usize| {
        let word = |at: usize, text: &str| matches!(tokens.get(at), Some(TokenTree::Ident(word)) if word == text);
        at >= 2 && word(at - 2, "mod") && word(at - 1, "tests") && matches!(tokens.get(at), Some(TokenTree::Group(_)))
    };
    (0..tokens.len()).filter(|at| !is_tests(*at)).map(|at| tokens[at].clone()).collect()
}

/// The `pub use` of a file, and its other tokens.
fn handed_on_and_rest(tokens: &TokenStream) -> (TokenStream, TokenStream) {
    let tokens: Vec<_> = tokens.clone().into_iter().collect();
    let is_word = |at: usize, text: &str| matches!(tokens.get(at), Some(TokenTree::Ident(word)) if word == text);
    let is_scope = |at: usize| matches!(tokens.get(at), Some(TokenTree::Group(_)));
    let (mut on, mut rest, mut is_on) = (Vec::new(), Vec::new(), false);
    for (at, token) in tokens.iter().enumerate() {
        is_on |= is_word(at, "pub") && (is_word(at + 1, "use") || is_scope(at + 1) && is_word(at + 2, "use"));
        if is_on { &mut on } else { &mut rest }.push(token.clone());
        is_on &= !matches!(token, TokenTree::Punct(end) if end.as_char() == ';');
    }
    (on.into_iter().collect(), rest.into_iter().collect())
}

/// Every path of a module's tokens that leads somewhere by `crate::`, `super::`, or a child of the module, from the root.
fn paths(module: &[String], tokens: &TokenStream, is_child: &dyn Fn(&str) -> bool) -> Vec<Vec<String>> {
    let tokens: Vec<_> = tokens.clone().into_iter().collect();
    let word = |at: usize| match tokens.get(at) {
        Some(TokenTree::Ident(word)) => word.to_string(),
        _ => String::new(),
    };
    let colons = |at: usize| {
        let colon = |at| matches!(tokens.get(at), Some(TokenTree::Punct(colon)) if colon.as_char() == ':');
        colon(at) && colon(at + 1)
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut from = None;
        while word(at) == "super" && colons(at + 1) {
            let up: &Vec<String> = from.get_or_insert(module.to_vec());
            from = Some(up[..up.len().saturating_sub(1)].to_vec());
            at += 3;
        }
        if word(at) == "crate" && colons(at + 1) {
            (from, at) = (Some(Vec::new()), at + 3);
        } else if from.is_none() && colons(at + 1) && is_child(&word(at)) && !(at >= 2 && colons(at - 2)) {
            from = Some(module.to_vec());
        }
        if let Some(from) = from {
            let end = leads(&tokens[at..], &from, &mut found);
            at += end.max(1);
            continue;
        }
        // What `pub(in ..)` names is a visibility, no import.
        let is_visibility = at >= 1 && word(at - 1) == "pub";
        if let Some(TokenTree::Group(group)) = tokens.get(at).filter(|_| !is_visibility) {
            let is_module = at >= 2 && word(at - 2) == "mod" && group.delimiter() == Delimiter::Brace;
            let inner: Vec<String> = module.iter().cloned().chain(is_module.then(|| word(at - 1))).collect();
            found.extend(paths(&inner, &group.stream(), is_child));
        }
        at += 1;
    }
    found
}

/// The paths that go on from there: one, or those of a group. Gives the number of tokens that make them up.
fn leads(tokens: &[TokenTree], from: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = from.to_vec();
    let mut at = 0;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(word)) if word == "self" => {}
            Some(TokenTree::Ident(word)) => path.push(word.to_string()),
            Some(TokenTree::Punct(all)) if all.as_char() == '*' => path.push("*".to_owned()),
            Some(TokenTree::Group(tree)) if tree.delimiter() == Delimiter::Brace => {
                let tree: Vec<_> = tree.stream().into_iter().collect();
                for member in tree.split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ',')) {
                    if !member.is_empty() {
                        leads(member, &path, found);
                    }
                }
                return at + 1;
            }
            _ => return at,
        }
        at += 1;
        let colon = |at| matches!(tokens.get(at), Some(TokenTree::Punct(colon)) if colon.as_char() == ':');
        if !(colon(at) && colon(at + 1)) {
            found.push(path);
            return at;
        }
        at += 2;
    }
}
