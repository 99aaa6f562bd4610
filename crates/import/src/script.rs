//! Text of other tools as text of a DAG file: templates switched off, words quoted for the shell.

/// Text that means itself where templates are read. `{#` is no comment in scripts and commands.
pub(crate) fn literal(text: &str) -> String {
    let text = text.replace("{{", "\u{0}").replace("{%", "\u{1}");
    text.replace('\u{0}', "{{ '{{' }}").replace('\u{1}', "{{ '{%' }}")
}

/// The same for values in which `{#` begins a comment (`env`, `working_dir`).
pub(crate) fn literal_value(text: &str) -> String {
    let text = text.replace("{{", "\u{0}").replace("{%", "\u{1}").replace("{#", "\u{2}");
    let text = text.replace('\u{0}', "{{ '{{' }}").replace('\u{1}', "{{ '{%' }}");
    text.replace('\u{2}', "{{ '{#' }}")
}

/// A word that the shell takes as it is.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A script that fails and says why: what stands for a task that could not be converted.
pub(crate) fn refuses(what: &str) -> String {
    literal(&format!("{}\n", refusal(what).replace("; ", "\n")))
}

/// The same as one command of a shell.
pub(crate) fn refusal(what: &str) -> String {
    let clean = |c: char| if c.is_control() || c == ';' { ' ' } else { c };
    let what: String = what.chars().map(clean).collect();
    format!("echo {} >&2; exit 1", quote(&format!("not converted: {what}")))
}

/// A word that no line of the text is, for the end of a here-document.
pub(crate) fn delimiter(text: &str) -> String {
    let mut word = String::from("STDIN");
    while text.lines().any(|line| line == word) {
        word.push('_');
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_templates_mean_themselves() {
        assert_eq!(quote("a-b/c.d"), "a-b/c.d");
        assert_eq!(quote("it's $x"), "'it'\\''s $x'");
        assert_eq!(quote(""), "''");
        assert_eq!(
            literal("docker ps --format '{{.Names}}' {% x {#"),
            "docker ps --format '{{ '{{' }}.Names}}' {{ '{%' }} x {#"
        );
        assert_eq!(literal_value("{#"), "{{ '{#' }}");
        assert_eq!(delimiter("a\nSTDIN\nSTDIN_"), "STDIN__");
    }
}
