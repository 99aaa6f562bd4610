//! Unit files: sections, assignments, continued lines, drop-ins.

/// One `Name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) section: String,
    pub(super) name: String,
    pub(super) value: String,
    /// Where it begins, from 1.
    pub(super) line: u32,
}

/// A unit: its file with what its drop-ins add, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit {
    pub(super) assignments: Vec<Assignment>,
    /// Lines that are no assignment.
    pub(super) odd: Vec<(u32, String)>,
}

impl Unit {
    /// The unit of a file; what it and each drop-in say is appended.
    pub(super) fn read(&mut self, text: &str) {
        let mut section = String::new();
        let mut lines = (1_u32..).zip(text.lines());
        while let Some((number, line)) = lines.next() {
            let mut whole = line.trim().to_owned();
            if whole.is_empty() || whole.starts_with(['#', ';']) {
                continue;
            }
            while whole.ends_with('\\') {
                whole.pop();
                whole.push(' ');
                match lines.next() {
                    // Comments within a continued line are left out.
                    Some((_, next)) if next.trim_start().starts_with(['#', ';']) => {
                        whole.push('\\');
                    }
                    Some((_, next)) => whole.push_str(next.trim_end()),
                    None => break,
                }
            }
            if let Some(name) = whole.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                name.clone_into(&mut section);
            } else if let Some((name, value)) = whole.split_once('=') {
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                self.assignments.push(Assignment {
                    section: section.clone(),
                    name,
                    value,
                    line: number,
                });
            } else {
                self.odd.push((number, whole));
            }
        }
    }

    /// The values of a name in a section; an empty one takes back those before it.
    pub(super) fn all(&self, section: &str, name: &str) -> Vec<&Assignment> {
        let mut found = Vec::new();
        for assignment in self.assignments.iter().filter(|a| a.section == section && a.name == name)
        {
            if assignment.value.is_empty() { found.clear() } else { found.push(assignment) }
        }
        found
    }

    /// The last value of a name in a section.
    pub(super) fn last(&self, section: &str, name: &str) -> Option<&Assignment> {
        self.all(section, name).pop()
    }
}

/// A boolean of systemd.
pub(super) fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_continue_over_lines_and_empty_ones_take_back() {
        let mut unit = Unit::default();
        unit.read("# c\n[Service]\nExecStart=/bin/a \\\n  # no\n  -b \\\n  -c\nExecStart=/bin/d\nodd\n[Timer]\nX=1\nX=\nX=2\n");
        let start = unit.all("Service", "ExecStart");
        assert_eq!(start[0].value.split_whitespace().collect::<Vec<_>>(), ["/bin/a", "-b", "-c"]);
        assert_eq!((start[0].line, start[1].line), (3, 7));
        assert_eq!(unit.all("Timer", "X").len(), 1);
        assert_eq!(unit.last("Timer", "X").unwrap().value, "2");
        assert_eq!(unit.odd, [(8, "odd".to_owned())]);
        assert_eq!((flag("Yes"), flag("off"), flag("maybe")), (Some(true), Some(false), None));
    }
}
