//! Results: a line of JSON each, and tables in Markdown.

use std::fs::File;
use std::io::Write;

use serde_json::json;

use crate::engines::{ENGINES, RAW, SQLITE, SQLITE_GROUPED};
use crate::rounds::Measured;

/// A line for every engine. The ratios say how much better it is than the others: above 1, it is.
pub(crate) fn write_json(file: &mut File, measured: &Measured) {
    for (engine, _) in &measured.series {
        let ratio = |other: &str| if *engine == other { None } else { measured.ratio(engine, other) };
        let line = json!({
            "workload": measured.workload,
            "engine": engine,
            "threads": measured.threads,
            "value": measured.value(engine),
            "unit": measured.unit.name,
            "ratio_sqlite": ratio(SQLITE),
            "ratio_sqlite_grouped": ratio(SQLITE_GROUPED),
            "ratio_raw": ratio(RAW),
        });
        writeln!(file, "{line}").unwrap();
    }
}

/// The figures of all engines.
pub(crate) fn print_values(all: &[Measured]) {
    let engines: Vec<_> =
        ENGINES.iter().filter(|engine| all.iter().any(|measured| measured.value(engine.name).is_some())).collect();
    let titles = engines.iter().map(|engine| engine.title);
    row(["work", "unit"].into_iter().chain(titles).map(str::to_owned));
    println!("|---|---|{}", "---:|".repeat(engines.len()));
    for measured in all {
        let values = engines.iter().map(|engine| measured.value(engine.name).map(show).unwrap_or_default());
        row([work(measured), measured.unit.name.to_owned()].into_iter().chain(values));
    }
}

/// How much better our engines are than the peers.
pub(crate) fn print_ratios(all: &[Measured]) {
    const OTHERS: [(&str, &str); 3] = [(SQLITE, "SQLite"), (SQLITE_GROUPED, "SQLite, group commit"), (RAW, "raw file")];
    let ours: Vec<_> = ENGINES
        .iter()
        .filter(|engine| engine.ours && engine.keeps)
        .filter(|engine| all.iter().any(|measured| measured.value(engine.name).is_some()))
        .collect();
    let columns = ours.iter().flat_map(|engine| OTHERS.map(|(_, other)| format!("{} over {other}", engine.title)));
    row(std::iter::once("better by a factor of".to_owned()).chain(columns));
    println!("|---|{}", "---:|".repeat(OTHERS.len() * ours.len()));
    for measured in all {
        let ratios = ours.iter().flat_map(|engine| {
            OTHERS.map(|(other, _)| measured.ratio(engine.name, other).map(show).unwrap_or_default())
        });
        let cells: Vec<_> = ratios.collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            row(std::iter::once(work(measured)).chain(cells));
        }
    }
}

fn work(measured: &Measured) -> String {
    match measured.threads {
        1 => format!("`{}`", measured.workload),
        threads => format!("`{}`, {threads} threads", measured.workload),
    }
}

/// A row of a table.
pub(crate) fn row(cells: impl IntoIterator<Item = String>) {
    println!("| {} |", cells.into_iter().collect::<Vec<_>>().join(" | "));
}

/// A number with three digits that mean something, and commas.
pub(crate) fn show(value: f64) -> String {
    let decimals = match value.abs() {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => return commas(value),
    };
    format!("{value:.decimals$}")
}

/// A whole number, with commas.
pub(crate) fn commas(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
