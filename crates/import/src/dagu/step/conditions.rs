//! Preconditions: a step, or a run, that is skipped.

use super::super::script::word;
use crate::report::Notes;
use crate::yaml::Field;
use fencepost_dagfile::document::Node;

/// Lines of a script that skip the task where a precondition is not met.
pub(in crate::dagu) fn conditions(field: &Field<'_>, notes: &mut Notes) -> Vec<String> {
    let items: Vec<&Node> = if field.value.is_list() {
        field.value.items().iter().collect()
    } else {
        vec![field.value]
    };
    let mut lines = Vec::new();
    for item in items {
        let condition = item
            .text()
            .or_else(|| item.get("condition").or_else(|| item.get("command")).and_then(Node::text));
        let expected = item.get("expected").and_then(Node::text);
        let is_negated = item.get("negate").and_then(Node::text) == Some("true");
        let Some(condition) = condition else {
            notes.needs(
                field.line,
                crate::yaml::shown(field.key, item),
                "it is no condition",
                "test it in the script: exit 99 skips",
            );
            continue;
        };
        let test = match expected {
            None if !condition.contains([';', '&', '|', '#', '\n']) => condition.to_owned(),
            None => format!("{{ {condition}\n}}"),
            Some(_) if condition.contains('"') => {
                notes.needs(
                    field.line,
                    crate::yaml::shown(field.key, item),
                    "its quotes cannot be taken over",
                    "test it in the script: exit 99 skips",
                );
                continue;
            }
            Some(expected) => match expected.strip_prefix("re:") {
                Some(pattern) => format!(
                    "printf '%s\\n' \"{condition}\" | grep -Eq -- {}",
                    crate::script::quote(pattern)
                ),
                None => format!("[ \"{condition}\" = {} ]", word(expected)),
            },
        };
        lines.push(if is_negated {
            format!("if {test}; then exit 99; fi")
        } else {
            format!("{test} || exit 99")
        });
    }
    lines
}
