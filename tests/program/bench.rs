use super::{HELLO, Place};

#[test]
fn bench_measures_appends_and_notes_what_was_acknowledged() {
    let place = Place::new();
    place.append("before", &[HELLO]);
    let load = ["--seconds", "0.4", "--threads", "3", "--streams", "1", "--mixed", "--chunk-bytes", "300"];
    for durability in ["durable", "buffered"] {
        let measured = place.ok(&[&["bench", "--durability", durability, "--acks", durability], &load[..]].concat());
        let measured = &measured.json()[0];
        let number = |name: &str| measured[name].as_f64().unwrap();
        assert!(number("appends") > 0.0 && number("appends_per_second") > 0.0, "{measured}");
        assert!(number("p50_us") <= number("p99_us") && number("p99_us") <= number("max_us"), "{measured}");
        assert!(number("text_bytes") > 0.0 && measured.get("disk_bytes").is_some(), "{measured}");
        let acks = std::fs::read_to_string(place.path(durability)).unwrap();
        assert!(acks.lines().count() as f64 > number("appends"), "forks, titles, rewinds and streams are noted too");
        place.ok(&["verify", "--acks", durability]);
    }
    assert_eq!(place.ok(&["show", "before"]).json().len(), 1);
}

#[test]
fn bench_takes_no_file_that_is_there_and_no_load_of_nothing() {
    let place = Place::new();
    place.write("acks", "mine");
    let run = place.run(&["bench", "--acks", "acks", "--seconds", "0.1"]);
    assert_eq!((run.exit, run.stderr.split(':').nth(1)), (2, Some(" cannot create acks")));
    assert_eq!(place.run(&["bench", "--threads", "0"]).exit, 2);
    let slow = place.ok(&["bench", "--rate", "10", "--seconds", "0.5"]);
    assert!((1.0..=6.0).contains(&slow.json()[0]["appends"].as_f64().unwrap()), "{}", slow.stdout);
    for bad in [["--seconds", "0"], ["--chunk-bytes", "0"], ["--durability", "often"], ["--threads", "2000"]] {
        assert_eq!(place.run(&[&["bench"], &bad[..]].concat()).exit, 2, "{bad:?}");
    }
}
