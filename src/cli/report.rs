//! The report as text: a line of sums, then its lines, the worst first.

use anstyle::Style;
use conversation_store::{ReportLine, Severity};

use super::style::{DIM, ERROR, WARNING};
use super::text::{count, printable};

/// The widest name of a severity.
const WIDTH: usize = 7;

/// The sums, `2 lost, 1 changed, 3 notes`, and each line of the report with its severity. Empty if the report is.
pub(super) fn text(of: Option<&str>, report: &[ReportLine]) -> String {
    if report.is_empty() {
        return String::new();
    }
    let of = of.map_or_else(String::new, |name| format!("{name}: "));
    let mut out = format!("{WARNING}report:{WARNING:#} {}{}\n", printable(&of), sums(report));
    for severity in Severity::ALL {
        let style = style(*severity);
        for line in report.iter().filter(|line| line.severity == *severity) {
            let words = line.to_string();
            let mut words = words.lines();
            let first = printable(words.next().unwrap_or_default());
            out.push_str(&format!("  {style}{severity:WIDTH$}{style:#}  {first}\n"));
            for more in words {
                out.push_str(&format!("  {:WIDTH$}  {}\n", "", printable(more)));
            }
        }
    }
    out
}

fn sums(report: &[ReportLine]) -> String {
    let sums = Severity::ALL.iter().filter_map(|severity| {
        let lines = report.iter().filter(|line| line.severity == *severity).count();
        match severity {
            _ if lines == 0 => None,
            Severity::Note => Some(count(lines, "note")),
            _ => Some(format!("{lines} {severity}")),
        }
    });
    sums.collect::<Vec<_>>().join(", ")
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Lost => ERROR,
        Severity::Changed => WARNING,
        _ => DIM,
    }
}
