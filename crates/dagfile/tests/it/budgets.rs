//! Hostile and huge files: one clear error, whatever the size of what they stand for.

use super::shown;
use fencepost_dagfile::{FILE_MAX, parse, read_bounded};

/// The only diagnostic of a file.
fn only(text: &[u8]) -> String {
    let parsed = parse(text, "x.yaml");
    assert_eq!(parsed.dag, None);
    let found = shown(&parsed.diagnostics);
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0].clone()
}

#[test]
fn alias_bombs_are_refused() {
    let mut wide = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    let mut narrow = String::from("a0: &a0 [x]\n");
    for i in 0..30 {
        let next = i + 1;
        let nine = vec![format!("*a{i}"); 9].join(", ");
        wide.push_str(&format!("a{next}: &a{next} [{nine}]\n"));
        narrow.push_str(&format!("a{next}: &a{next} [*a{i}, *a{i}]\n"));
    }
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 5_000].join(", "));
    for bomb in [wide, narrow, long] {
        assert!(only(bomb.as_bytes()).contains("[too-large]"));
    }
    // A few anchors are fine.
    let fine = "x: &x {run: x}\ntasks: {a: *x, b: *x, c: {<<: *x, retries: 1}}\n";
    let found = shown(&parse(fine.as_bytes(), "x.yaml").diagnostics);
    assert_eq!(found, ["1:1 error [unknown-key] unknown key `x` | "]);
}

#[test]
fn deep_nesting_is_refused() {
    let mut aliases = String::from("a0: &a0 [x]\n");
    for i in 0..200 {
        aliases.push_str(&format!("a{0}: &a{0} [*a{i}]\n", i + 1));
    }
    let line = |i| format!("{}a:\n", " ".repeat(i));
    let indented = (0..500).map(line).collect::<Vec<_>>().concat();
    for deep in
        ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), indented, aliases]
    {
        let found = only(deep.as_bytes());
        assert!(found.contains("nested more than 64 deep"), "{found}");
    }
    let flat =
        format!("tasks: {{a: {{run: x, expand: {{e: [{}1{}]}}}}}}", "[".repeat(55), "]".repeat(55));
    assert!(parse(flat.as_bytes(), "x.yaml").dag.is_some());
}

#[test]
fn bytes_that_are_no_text() {
    assert_eq!(
        only(b"tasks:\n  a: \0{}"),
        "2:6 error [nul-byte] a NUL byte | a DAG file is text; take it out"
    );
    assert_eq!(
        only(b"tasks:\n  \xc3\xa9\xff: {}"),
        "2:4 error [not-utf8] this byte is not UTF-8 | save the file as UTF-8"
    );
    assert!(only(b"a: \x07").contains("[yaml-syntax]"));
    let bom = b"\xef\xbb\xbftasks: {a: {run: x}}";
    assert!(parse(bom, "x.yaml").dag.is_some());
}

#[test]
fn a_large_file_is_refused_by_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.yaml");
    // Sparse: 50 MB that take no place.
    std::fs::File::create(&path).unwrap().set_len(50_000_000).unwrap();
    let bytes = read_bounded(&path).unwrap();
    assert_eq!(bytes.len(), FILE_MAX + 1);
    assert!(only(&bytes).starts_with("1:1 error [too-large] the file is larger than 1 MiB"));
    let most = format!("tasks: {{a: {{run: x}}}} #{}", "x".repeat(FILE_MAX - 22));
    assert_eq!(most.len(), FILE_MAX);
    assert!(parse(most.as_bytes(), "x.yaml").dag.is_some());
}

#[test]
fn ten_thousand_tasks() {
    let chain = |first: &str| -> String {
        let task = |i: i32| match i {
            0 => format!("  t0: {{run: x, depends_on: [{first}]}}\n"),
            i => format!("  t{i}: {{run: 'echo {{{{ ds }}}}', depends_on: [t{}]}}\n", i - 1),
        };
        format!("tasks:\n{}", (0..10_000).map(task).collect::<String>())
    };
    let parsed = parse(chain("").as_bytes(), "x.yaml");
    assert_eq!(parsed.dag.map(|dag| dag.tasks.len()), Some(10_000));
    let circle = only(chain("t9999").as_bytes());
    assert!(circle.starts_with("2:29 error [cycle]"), "{circle}");
    assert!(circle.len() < 400, "{circle}");
}

#[test]
fn ten_thousand_mistakes_are_shown_in_part() {
    let line = |i| format!("  t{i}: {{run: x, foo: 1}}\n");
    let text = (0..10_000).map(line).collect::<Vec<_>>().concat();
    let parsed = parse(format!("tasks:\n{text}").as_bytes(), "x.yaml");
    let found = shown(&parsed.diagnostics);
    assert_eq!(found.len(), 201);
    assert_eq!(
        found[0],
        "1:1 error [too-many] 9800 more like these are not shown | \
         mend the first ones and validate again"
    );
}

/// On a small stack, as a thread of a server has it.
#[test]
fn no_template_overflows_the_stack() {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let n = 20_000;
        let chains = [
            format!("{{{{ a{} }}}}", ".b".repeat(n)),
            format!("{{{{ a{} }}}}", "[0]".repeat(n)),
            format!("{{{{ a{} }}}}", "()".repeat(n)),
            format!("{{{{ 1{} }}}}", "+1".repeat(n)),
            format!("{{{{ 1{} }}}}", "|abs".repeat(n)),
            format!("{{{{ {}1 }}}}", "not ".repeat(n)),
            format!("{{{{ {}1 }}}}", "-".repeat(n)),
            format!("{{{{ {}1 }}}}", "(".repeat(n)),
            format!("{{{{ {}1 }}}}", "1 if a else ".repeat(n)),
            "{% if ds %}".repeat(n),
            format!("{{% if ds %}}{}{{% endif %}}", "{% elif ds %}".repeat(n)),
            format!("{{% if ds %}}{}{{% endif %}}", "{% elif ds %}".repeat(198)),
            format!("{{{{ a{} }}}}", ".b".repeat(120)),
            format!("{{{{ {}ds }}}}", "-".repeat(240)),
        ];
        for chain in chains {
            let text = format!("tasks: {{t: {{run: '{chain}', when: '{chain}'}}}}");
            parse(text.as_bytes(), "x.yaml");
        }
    });
    thread.unwrap().join().unwrap();
}
