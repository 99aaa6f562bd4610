//! The script of a step, for `sh`: variables, conditions, redirections, what becomes of its output and its status.

use crate::script::{delimiter, quote};

/// What a step runs.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// For a shell.
    Shell(String),
    /// A program with its arguments; Dagu puts in variables, and no shell reads it.
    Argv(Vec<String>),
    /// For another interpreter.
    Interpreter { program: String, text: String },
}

/// What stands around it.
#[derive(Debug, Clone, Default)]
pub(super) struct Around {
    /// Lines before all.
    pub(super) exports: Vec<String>,
    /// Lines that skip the step.
    pub(super) conditions: Vec<String>,
    pub(super) stdout: Option<String>,
    pub(super) stderr: Option<String>,
    /// The output that its stdout becomes.
    pub(super) output: Option<String>,
    pub(super) forgives: Option<Forgiven>,
}

/// Exit statuses that are made 0.
#[derive(Debug, Clone)]
pub(super) enum Forgiven {
    All,
    Codes(Vec<u8>),
}

impl Around {
    pub(super) fn is_nothing(&self) -> bool {
        self.exports.is_empty()
            && self.conditions.is_empty()
            && self.stdout.is_none()
            && self.stderr.is_none()
            && self.output.is_none()
            && self.forgives.is_none()
    }

    /// The whole as one script for `sh -e`.
    pub(super) fn script(&self, body: &Body) -> String {
        let mut text = String::new();
        for line in self.exports.iter().chain(&self.conditions) {
            text.push_str(line);
            text.push('\n');
        }
        if let Some(file) = &self.stderr {
            text.push_str(&format!("exec 2>{}\n", word(file)));
        }
        if let Some(file) = self.stdout.as_ref().filter(|_| self.output.is_none()) {
            text.push_str(&format!("exec >{}\n", word(file)));
        }
        let body = body.shell();
        if self.output.is_none() && self.forgives.is_none() {
            return text + &body;
        }
        // In a subshell of its own, so that -e holds in it although its status is looked at.
        let to = if self.output.is_some() { " >\"$FENCEPOST_TMP_DIR/stdout\"" } else { "" };
        text.push_str(&format!("set +e\n(\nset -e\n{body}){to}\n"));
        text.push_str("rc=$?\nset -e\n");
        if self.output.is_some() {
            text.push_str("cat \"$FENCEPOST_TMP_DIR/stdout\"\n");
        }
        if let (Some(file), true) = (&self.stdout, self.output.is_some()) {
            text.push_str(&format!("cp \"$FENCEPOST_TMP_DIR/stdout\" {}\n", word(file)));
        }
        match &self.forgives {
            Some(Forgiven::All) => {}
            Some(Forgiven::Codes(codes)) => {
                let codes: Vec<String> = codes.iter().map(u8::to_string).collect();
                text.push_str(&format!(
                    "case $rc in 0|{}) ;; *) exit $rc ;; esac\n",
                    codes.join("|")
                ));
            }
            None => text.push_str("[ $rc -eq 0 ] || exit $rc\n"),
        }
        if let Some(name) = &self.output {
            text.push_str(&format!(
                "{{\n  echo '{name}<<END_OF_OUTPUT'\n  printf '%s\\n' \"$(cat \"$FENCEPOST_TMP_DIR/stdout\")\"\n  \
                 echo END_OF_OUTPUT\n}} >>\"$FENCEPOST_OUTPUT_FILE\"\n"
            ));
        }
        text
    }
}

impl Body {
    fn shell(&self) -> String {
        match self {
            Self::Shell(text) => format!("{}\n", text.trim_end()),
            Self::Argv(words) => {
                let words: Vec<String> = words.iter().map(|word| self::word(word)).collect();
                format!("{}\n", words.join(" "))
            }
            Self::Interpreter { program, text } => {
                let text = text.trim_end();
                let end = delimiter(text);
                format!("{program} <<'{end}'\n{text}\n{end}\n")
            }
        }
    }
}

/// A word in which variables and commands are evaluated, as Dagu does.
pub(super) fn word(text: &str) -> String {
    if text.contains(['$', '`']) {
        return format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    }
    quote(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_a_step_keeps_its_status() {
        let around = Around {
            output: Some("N".into()),
            forgives: Some(Forgiven::Codes(vec![2])),
            ..Around::default()
        };
        assert_eq!(
            around.script(&Body::Argv(vec!["wc".into(), "-l".into(), "${F} x".into()])),
            "set +e\n(\nset -e\nwc -l \"${F} x\"\n) >\"$FENCEPOST_TMP_DIR/stdout\"\nrc=$?\nset -e\n\
             cat \"$FENCEPOST_TMP_DIR/stdout\"\ncase $rc in 0|2) ;; *) exit $rc ;; esac\n\
             {\n  echo 'N<<END_OF_OUTPUT'\n  printf '%s\\n' \"$(cat \"$FENCEPOST_TMP_DIR/stdout\")\"\n  echo END_OF_OUTPUT\n} >>\"$FENCEPOST_OUTPUT_FILE\"\n"
        );
        let around = Around {
            stdout: Some("/tmp/o".into()),
            conditions: vec!["c || exit 99".into()],
            ..Around::default()
        };
        assert_eq!(
            around.script(&Body::Interpreter {
                program: "python3".into(),
                text: "print(1)\n".into()
            }),
            "c || exit 99\nexec >/tmp/o\npython3 <<'STDIN'\nprint(1)\nSTDIN\n"
        );
    }
}
