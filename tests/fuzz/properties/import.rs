//! Exports of other programs: each is taken or an error, whatever it holds; taken again it adds nothing; what was taken
//! loads.

use std::path::Path;

use conversation_store::transfer::{ImportOptions, Input, import};
use conversation_store::{Error, ListQuery, Store};

/// Takes the bytes as a file.
pub fn holds(data: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("export.json");
    std::fs::write(&path, data).unwrap();
    let store = Store::open("memory:").unwrap();
    let taken = |path: &Path| import(Some(&store), Input::Path(path), &ImportOptions::default(), &mut |_| ());
    match taken(&path) {
        Ok(_) => assert_eq!(taken(&path).unwrap().added, 0),
        Err(Error::InvalidInput(_)) => return,
        Err(error) => panic!("{error}"),
    }
    for item in store.list(&ListQuery::new()).unwrap().items {
        store.load_strict(item.id).unwrap();
    }
}
