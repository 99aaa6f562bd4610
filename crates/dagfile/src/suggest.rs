//! "Did you mean": the nearest known word, by edit distance or by what other tools call it.

/// What other tools call our keys.
const OTHER_NAMES: [(&str, &str); 46] = [
    ("after", "depends_on"),
    ("bash", "run"),
    ("bash_command", "run"),
    ("args", "command"),
    ("cmd", "command"),
    ("concurrency", "max_active_tasks"),
    ("cron", "schedule"),
    ("cwd", "working_dir"),
    ("deps", "depends_on"),
    ("dependencies", "depends_on"),
    ("docs", "doc_md"),
    ("environment", "env"),
    ("entrypoint", "command"),
    ("exec", "command"),
    ("if", "when"),
    ("condition", "when"),
    ("id", "dag_id"),
    ("image", "container"),
    ("inputs", "params"),
    ("interval", "schedule"),
    ("jobs", "tasks"),
    ("matrix", "expand"),
    ("max_retries", "retries"),
    ("name", "dag_id"),
    ("need", "depends_on"),
    ("needs", "depends_on"),
    ("on_failure", "on_failure_callback"),
    ("on_success", "on_success_callback"),
    ("parallelism", "max_active_tasks"),
    ("parameters", "params"),
    ("priority", "priority_weight"),
    ("requires", "depends_on"),
    ("retry", "retries"),
    ("schedule_interval", "schedule"),
    ("script", "run"),
    ("sensor", "wait"),
    ("shell_command", "run"),
    ("steps", "tasks"),
    ("stop_timeout", "kill_grace"),
    ("timeout", "execution_timeout"),
    ("tz", "timezone"),
    ("upstream", "depends_on"),
    ("upstream_task_ids", "depends_on"),
    ("user", "run_as_user"),
    ("variables", "env"),
    ("workdir", "working_dir"),
];

/// The word of `known` that `text` most likely stands for.
pub(crate) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = text.to_ascii_lowercase().replace('-', "_");
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == lower).map(|(_, ours)| *ours);
    let length = lower.chars().count();
    // One slip in three letters, up to three.
    let bound = ((length + 1) / 3).min(3);
    let mut best: Option<(usize, &str)> = None;
    for word in known {
        if Some(word) == other {
            return Some(word);
        }
        let limit = best.map_or(bound, |(distance, _)| distance.saturating_sub(1));
        let candidate = word.to_ascii_lowercase().replace('-', "_");
        if let Some(distance) = distance_within(&lower, &candidate, limit) {
            best = Some((distance, word));
            if distance == 0 {
                break;
            }
        }
    }
    best.map(|(_, word)| word)
}

/// `did you mean ...?` or nothing.
pub(crate) fn did_you_mean<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(text, known).map_or_else(String::new, |word| format!("did you mean `{word}`?"))
}

/// The optimal-string-alignment distance (insert, delete, replace, swap neighbours), if it is at
/// most `limit`.
fn distance_within(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit || a.len().max(b.len()) > 200 {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        if row.iter().all(|cost| *cost > limit) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_other_names_are_recognised() {
        let known = ["depends_on", "retries", "retry_delay", "run", "env", "trigger_rule", "tasks"];
        for (text, expected) in [
            ("need", Some("depends_on")),
            ("depend_on", Some("depends_on")),
            ("depends-on", Some("depends_on")),
            ("retires", Some("retries")),
            ("Retries", Some("retries")),
            ("steps", Some("tasks")),
            ("rnu", Some("run")),
            ("triger_rule", Some("trigger_rule")),
            ("xyzzy", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(nearest(text, known.into_iter()), expected, "{text}");
        }
        assert_eq!(
            did_you_mean("extrct", ["load", "extract"].into_iter()),
            "did you mean `extract`?"
        );
        assert_eq!(distance_within("kitten", "sitting", 9), Some(3));
        assert_eq!(distance_within("ab", "ba", 9), Some(1));
    }
}
