//! The container, the service and the release: what can be known of them without making one.

use std::process::Command;

use tempfile::tempdir;

const DOCKERFILE: &str = include_str!("../../Dockerfile");
const PAGE: &str = include_str!("../../src/docs/http-api.md");

#[test]
fn its_settings_are_settings_and_its_features_are_features() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("keys.json"), "{\"keys\":[]}").unwrap();
    let environment = DOCKERFILE.lines().filter_map(|line| line.strip_prefix("ENV CONVO_")).collect::<String>();
    let settings: Vec<_> = environment.split(' ').filter_map(|pair| pair.split_once('=')).collect();
    assert!(settings.len() >= 3, "{environment}");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_convo"));
    for (name, value) in settings {
        let name = if name.starts_with("CONVO_") { name.to_owned() } else { format!("CONVO_{name}") };
        serve.env(name, value.replace("/data", folder.path().to_str().unwrap()));
    }
    let checked = serve.args(["serve", "--check-config"]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let manifest = include_str!("../../Cargo.toml");
    let features = DOCKERFILE.split("--features ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    // The manifest of a package has no workspace.
    let released = manifest.split("[workspace.metadata.dist]").nth(1).unwrap_or_default();
    let released = released.split("features = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
    let released = released.split(", ").map(|name| name.trim_matches('"')).filter(|name| !name.is_empty());
    for feature in features.split(',').chain(released) {
        assert!(manifest.contains(&format!("\n{feature} = [")), "{feature}");
    }
}

#[test]
fn the_settings_that_compose_gives_are_settings() {
    let folder = tempdir().unwrap();
    let settings = PAGE.split("content: |\n").nth(1).unwrap();
    let settings: Vec<_> = settings.lines().map_while(|line| line.strip_prefix("      ")).collect();
    let file = folder.path().join("convo.toml");
    std::fs::write(&file, settings.join("\n")).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_convo"));
    serve.env("CONVO_CONFIG", &file).env("OPENAI_API_KEY", "sk-1");
    let checked = serve.args(["serve", "--check-config"]).output().unwrap();
    assert!(checked.status.success(), "{}: {}", settings.join("\n"), String::from_utf8_lossy(&checked.stderr));
}

/// It prints nothing about a unit that it takes. Its exit code is 0 for one with unknown keys, too.
#[test]
fn systemd_takes_the_unit() {
    let unit = PAGE.split("```ini\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let folder = tempdir().unwrap();
    let file = folder.path().join("convo.service");
    std::fs::write(&file, unit.replace("/usr/local/bin/convo", env!("CARGO_BIN_EXE_convo"))).unwrap();
    let Ok(judged) = Command::new("systemd-analyze").arg("verify").arg(&file).output() else {
        println!("NOT CHECKED: the unit of systemd, because systemd-analyze is not there");
        return;
    };
    let words = String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success() && words.is_empty(), "{words}");
}
