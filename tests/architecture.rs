//! Which part of the crate may know which: the direction in which data flows, read from the paths in the source.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Every module of src/, with the modules that it may import, besides itself. A module stands behind all that it
/// imports, so the order of the rows is the direction.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("error", &["model"]),
    ("record", &["error", "model"]),
    ("history", &["error", "model", "record"]),
    ("log", &["error", "history", "model", "record"]),
    ("provider", &["error", "history", "model"]),
    ("store", &["error", "history", "log", "model", "provider"]),
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
fn the_files_of_the_log_import_one_another_without_a_circle() {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, file, source) in sources() {
        let path = path_of(&file);
        if let [folder, part, ..] = path.as_slice()
            && folder == "log"
            && part != "tests"
        {
            imports.entry(part.clone()).or_default().extend(named_from(1, &path, &source));
        }
    }
    let parts: BTreeSet<String> = imports.keys().cloned().collect();
    for (part, imported) in &imports {
        let others: Vec<_> = imported.difference(&parts).collect();
        assert!(others.is_empty(), "{part} imports {others:?} from log/mod.rs: name the file that it stands in");
    }
    // Who imports nothing of those that are left is in no circle.
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        imports.retain(|_, imported| !imported.is_disjoint(&left));
        if imports.len() == left.len() {
            break;
        }
    }
    assert!(imports.is_empty(), "a circle, and who imports it: {imports:?}");
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
        ("pub(super) fn f() {} pub(crate) fn g() {}", &[]),
        ("use super::super::{engine, model::Json};", &["engine", "model"]),
        ("// crate::engine\n/* crate::log */ const A: &str = \"crate::store\";", &[]),
        ("use crate::*;", &["*"]),
    ];
    for (source, names) in table {
        assert_eq!(named_from_root(&["log".to_owned(), "open".to_owned()], source), names, "{source}");
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

/// The first name of every path that starts at the crate's root, by `crate::` or by enough `super::`.
fn named_from_root(path: &[String], source: &str) -> Vec<String> {
    named_from(0, path, source)
}

/// The first name of every path that starts at the module that the first `depth` names of this module's path lead to.
fn named_from(depth: usize, path: &[String], source: &str) -> Vec<String> {
    let mut names = Vec::new();
    visit(path.len() - depth, path.len(), &source.parse::<TokenStream>().unwrap(), &mut names);
    names
}

/// `wanted`: so many modules up; `depth`: so many lead to the root.
fn visit(wanted: usize, depth: usize, tokens: &TokenStream, names: &mut Vec<String>) {
    let tokens: Vec<_> = tokens.clone().into_iter().collect();
    let word = |at: usize| match tokens.get(at) {
        Some(TokenTree::Ident(word)) => word.to_string(),
        _ => String::new(),
    };
    let colons = |at: usize| {
        let colon = |at| matches!(tokens.get(at), Some(TokenTree::Punct(colon)) if colon.as_char() == ':');
        colon(at) && colon(at + 1)
    };
    let mut at = 0;
    while at < tokens.len() {
        let mut up = 0;
        while word(at) == "super" && colons(at + 1) {
            (up, at) = (up + 1, at + 3);
        }
        if word(at) == "crate" && colons(at + 1) {
            (up, at) = (depth, at + 3);
        }
        if up > 0 && up == wanted {
            match tokens.get(at) {
                Some(TokenTree::Group(tree)) => names.extend(first_names(tree.stream())),
                Some(name) => names.push(name.to_string()),
                None => {}
            }
        } else if let Some(TokenTree::Group(group)) = tokens.get(at) {
            let is_module = at >= 2 && word(at - 2) == "mod" && group.delimiter() == Delimiter::Brace;
            let deeper = usize::from(is_module);
            visit(wanted + deeper, depth + deeper, &group.stream(), names);
        }
        at += 1;
    }
}

/// The first name of each member of `{a::b, c}`.
fn first_names(tree: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_first = true;
    for token in tree {
        match &token {
            TokenTree::Punct(comma) if comma.as_char() == ',' => is_first = true,
            TokenTree::Ident(name) if is_first => {
                names.push(name.to_string());
                is_first = false;
            }
            _ => {}
        }
    }
    names
}
