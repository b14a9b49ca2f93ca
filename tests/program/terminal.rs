//! The program on a terminal: a real one, of 80 columns.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{ANSWER, HELLO, Place, Run, STORE};

const CALL: &str = r#"{"role": "assistant", "chunks": [{"type": "thinking", "text": "I have to look."}, {"type": "tool_call", "id": "call_1", "name": "ls", "arguments": "{}"}], "model": "gpt-5", "finish_reason": "tool_calls", "created_at": "2026-01-02T03:04:05Z"}"#;

impl Place {
    /// A run whose input, output and errors are a terminal: what a person sees, and the exit code.
    fn on_terminal(&self, args: &[&str], typed: &str, environment: &[(&str, &str)]) -> Run {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let terminal = || {
            let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
            Stdio::from(File::options().read(true).write(true).open(path).unwrap())
        };
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("convo"));
        command.current_dir(self.dir.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.envs([("CONVO_STORE", STORE), ("TERM", "xterm-256color"), ("PAGER", "cat")]);
        command.envs(environment.iter().copied());
        let mut child = command.args(args).stdin(terminal()).stdout(terminal()).stderr(terminal()).spawn().unwrap();
        // The terminal has no other end any more once the program has ended.
        drop(command);
        let mut screen = File::from(controller);
        screen.write_all(typed.as_bytes()).unwrap();
        let mut reader = screen.try_clone().unwrap();
        let read = thread::spawn(move || {
            let mut seen = Vec::new();
            let mut piece = [0; 4096];
            // A terminal without another end is an error to read from.
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                seen.extend_from_slice(&piece[..length]);
            }
            seen
        });
        let exit = child.wait().unwrap().code().unwrap();
        let seen = String::from_utf8(read.join().unwrap()).unwrap();
        Run { exit, stdout: seen.replace("\r\n", "\n"), stderr: String::new() }
    }

    /// What a person sees, without colours.
    fn screen(&self, args: &[&str]) -> String {
        let run = self.on_terminal(args, "", &[("NO_COLOR", "1")]);
        assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
        run.stdout
    }
}

#[test]
fn show_is_text_for_people() {
    let place = Place::new();
    let dated = HELLO.replacen('{', r#"{"created_at": "2026-01-02T03:04:05Z", "#, 1);
    let long = dated.replace("hello", &"word ".repeat(1000)).replace("user", "assistant");
    place.append("c", &[&dated, CALL, &long]);
    place.ok(&["rewind", "c", "2"]);
    place.append("c", &[&long]);
    let screen = place.screen(&["show", "c"]);
    let wanted = "\
c  hello  3 messages, 1 hidden  last seq 6

message 0  user  seq 1  2026-01-02 03:04:05 UTC
    hello

message 1  assistant  seq 2 to 3  gpt-5  tool_calls  2026-01-02 03:04:05 UTC
    chunk 0  thinking
      I have to look.
    chunk 1  tool call  ls call_1
      {}

message 1  tool  synthetic
    tool result  ls call_1 failed
";
    assert!(screen.starts_with(wanted), "{screen}");
    let lines: Vec<&str> = screen.lines().filter(|line| line.starts_with("    word")).collect();
    assert!(lines.len() == 30 && lines.iter().all(|line| line.chars().count() <= 80), "{screen}");
    assert!(screen.contains("\n    … 37 more lines, 2750 characters: --full shows them\n"), "{screen}");
    assert!(!place.screen(&["show", "c", "--full"]).contains('…'));
    let last = place.screen(&["show", "c", "--last", "1"]);
    assert!(last.contains("\n… 3 messages before: --last leaves them out\n\nmessage 3  assistant"), "{last}");
}

#[test]
fn text_is_printed_elsewhere_if_asked() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER]);
    for command in [&["show", "c"][..], &["list"], &["entries", "c"], &["next", "c"]] {
        assert_eq!(place.ok(&[command, &["--text"]].concat()).stdout, place.screen(command), "{command:?}");
    }
    assert!(place.on_terminal(&["list", "--json"], "", &[]).stdout.starts_with("{\"conversation\""));
}

#[test]
fn a_prompt_is_read_in_lines() {
    let place = Place::new();
    place.append("c", &[HELLO, CALL, HELLO]);
    let screen = place.screen(&["prompt", "c", "--for", "openai-chat"]);
    assert!(screen.contains("\n{\n  \"messages\": [\n    {\n      \"role\": \"user\",\n"), "{screen}");
    assert!(screen.contains("(thinking_left_out)\n"), "{screen}");
    let report = place.screen(&["prompt", "c", "--for", "openai-chat", "--report"]);
    assert!(report.contains("(thinking_left_out)\n") && !report.contains("messages\""), "{report}");
    place.append("plain", &[HELLO]);
    let report = place.screen(&["prompt", "plain", "--for", "openai-chat", "--report"]);
    assert_eq!(report, "nothing was left out or altered\n");
}

#[test]
fn findings_are_read_in_lines() {
    let place = Place::new();
    place.write(
        "request.json",
        r#"[{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "c", "content": ""}]"#,
    );
    let screen = place.screen(&["check", "request.json", "--for", "openai-chat"]);
    assert!(screen.starts_with("messages[1]  hard  OC-08\n    "), "{screen}");
    assert!(screen.contains("\n    cure: ") && screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
}

#[test]
fn colours_are_as_they_are_asked_for() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    let coloured = |args: &[&str], environment: &[(&str, &str)]| {
        place.on_terminal(&[&["show", "c"], args].concat(), "", environment).stdout.contains("\u{1b}[")
    };
    assert!(coloured(&[], &[]));
    assert!(coloured(&["--color", "always"], &[("NO_COLOR", "1")]));
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert!(!coloured(&[], &[environment]), "{environment:?}");
    }
    assert!(!coloured(&["--color=never"], &[]));
    assert!(place.ok(&["show", "c", "--text", "--color", "always"]).stdout.contains("\u{1b}["));
    assert!(!place.ok(&["show", "c", "--text"]).stdout.contains('\u{1b}'));
    assert!(!place.ok(&["show", "c", "--color", "always"]).stdout.contains('\u{1b}'), "JSON has no colours");
    let help = |color| place.run(&["--color", color, "help", "show"]).stdout.contains("\u{1b}[");
    assert_eq!((help("always"), help("never"), help("auto")), (true, false, false));
    // Who is to be coloured is also what a wrong command line gets.
    assert!(place.run(&["show", "--color", "always"]).stderr.contains("\u{1b}["));
}

#[test]
fn long_output_goes_through_the_pager() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    place.write("pager", "#!/bin/sh\nprintf 'paged %s %s\\n' \"$LESS\" \"$1\"\ncat\n");
    let pager = place.path("pager");
    std::fs::set_permissions(&pager, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let pager = format!("{} -x", pager.display());
    let paged = |args: &[&str], environment: &[(&str, &str)]| {
        place.on_terminal(args, "", environment).stdout.starts_with("paged FRXK -x\n")
    };
    for command in [&["show", "c"][..], &["list"], &["entries", "c"]] {
        assert!(paged(command, &[("PAGER", &pager)]), "{command:?}");
        assert!(!paged(&[command, &["--no-pager"]].concat(), &[("PAGER", &pager)]), "{command:?}");
        assert!(!paged(&[command, &["--json"]].concat(), &[("PAGER", &pager)]), "{command:?}");
    }
    assert!(paged(&["list"], &[("CONVO_PAGER", &pager), ("PAGER", "cat")]));
    assert!(!paged(&["list"], &[("CONVO_PAGER", ""), ("PAGER", &pager)]));
    // What follows the pages is printed after them.
    place.append("long", &[HELLO; 60]);
    let run = place.on_terminal(&["entries", "long", "--limit", "50"], "", &[("PAGER", &pager), ("NO_COLOR", "1")]);
    let (_, cursor) = run.stdout.trim_end().rsplit_once("there are more: --since ").unwrap();
    assert!(cursor.starts_with("50-"), "{}", run.stdout);
    assert_eq!(place.ok(&["entries", "long", "--since", cursor, "--json"]).stdout.lines().count(), 10);
    // The conversation that has the name now is another one.
    place.ok(&["delete", "long", "--yes"]);
    place.append("long", &[HELLO; 60]);
    assert_eq!(place.run(&["entries", "long", "--since", cursor]).exit, 2);
    let run = place.on_terminal(&["show", "c"], "", &[("PAGER", "no-such-pager"), ("NO_COLOR", "1")]);
    assert!(run.stdout.starts_with("warning: cannot start the pager `no-such-pager`: "), "{}", run.stdout);
    assert!(run.exit == 0 && run.stdout.contains("\nmessage 0  user"), "{}", run.stdout);
    // A pager that is left early ends the program in silence.
    place.append("d", &[&HELLO.replace("hello", &"word ".repeat(100_000))]);
    let run = place.on_terminal(&["show", "d", "--full"], "", &[("PAGER", "true")]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, ""));
}

#[test]
fn erasing_is_asked_for() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER]);
    let no = place.on_terminal(&["delete", "c"], "n\n", &[]);
    assert!(no.stdout.contains("Delete c \"hello\", 2 messages? [y/N] "), "{}", no.stdout);
    assert!(no.exit == 1 && no.stdout.contains("nothing was deleted"), "{}", no.stdout);
    assert_eq!(place.on_terminal(&["redact", "c", "0"], "\n", &[]).exit, 1);
    assert_eq!(place.on_terminal(&["redact", "c", "0"], "y\n", &[]).exit, 0);
    assert_eq!(place.ok(&["show", "c"]).json()[0]["chunks"][0]["text"], "[redacted]");
    assert_eq!(place.on_terminal(&["delete", "c"], "yes\n", &[]).exit, 0);
    assert_eq!(place.run(&["show", "c"]).exit, 2);
}
