//! Lists for people: narrow statements that find the keys of a page by filters and a place in its
//! order. The rows themselves are read by key, in one trip for the page, by the neighbours.
//!
//! A list of words is matched as `,a,b,` against `%,word,%`: exact, because the words hold no
//! comma, and one text for both databases whatever the number of words. An empty filter matches
//! everything.

pub mod attempts;
pub mod dags;
pub mod events;
pub mod jobs;
pub mod pools;
pub mod runs;
pub mod tasks;

/// Words as the filters of this module take them.
pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for word in words {
        if text.is_empty() {
            text.push(',');
        }
        text.push_str(word);
        text.push(',');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{attempts, dags, events, pools, runs, tasks, words};
    use crate::Stmt;
    use rusqlite::Connection;

    /// Tables that grow with the history.
    const GROWING: [&str; 6] = ["task_instance", "attempt", "run", "event", "xcom", "outbox"];
    /// Partial indexes that hold only what is under way.
    const SMALL: [&str; 3] = ["ti_scheduled", "attempt_queued", "attempt_open"];

    #[test]
    fn no_words_are_no_filter() {
        assert_eq!(words([]), "");
        assert_eq!(words(["failed"]), ",failed,");
        assert_eq!(words(["failed", "running"]), ",failed,running,");
    }

    fn store() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let text = include_str!("../migrations/0001_init.sql");
        let text = text.replace("@IDENTITY@", "INTEGER PRIMARY KEY AUTOINCREMENT");
        connection.execute_batch(&text).unwrap();
        connection
    }

    fn plan(connection: &Connection, text: &str) -> Vec<String> {
        let text = format!("EXPLAIN QUERY PLAN {}", text.replace('$', "?"));
        let mut prepared = connection.prepare(&text).unwrap();
        let values = vec![1; prepared.parameter_count()];
        let lines = prepared.query_map(rusqlite::params_from_iter(values), |row| row.get(3));
        lines.unwrap().map(Result::unwrap).collect()
    }

    fn walks(line: &str) -> bool {
        let Some(rest) = line.strip_prefix("SCAN ") else { return false };
        let table = rest.split(' ').next().unwrap_or_default();
        let grows = GROWING.contains(&table) || ["e", "t", "r", "h"].contains(&table);
        grows && !SMALL.iter().any(|index| rest.ends_with(index))
    }

    #[test]
    fn no_list_walks_the_history() {
        let connection = store();
        let lists: [&[Stmt]; 6] = [
            attempts::STATEMENTS,
            dags::STATEMENTS,
            events::STATEMENTS,
            pools::STATEMENTS,
            runs::STATEMENTS,
            tasks::STATEMENTS,
        ];
        for stmt in lists.concat() {
            let lines = plan(&connection, stmt.text);
            assert!(!lines.iter().any(|line| walks(line)), "{}: {lines:?}", stmt.name);
        }
    }

    #[test]
    fn what_has_not_ended_is_found_by_its_own_indexes() {
        let connection = store();
        for (place, index) in [(0, "attempt_queued"), (1, "attempt_open")] {
            let stmt = attempts::STATEMENTS[place];
            let lines = plan(&connection, stmt.text).join(" ");
            assert!(lines.contains(index), "{}: {lines}", stmt.name);
        }
        assert!(
            plan(&connection, "SELECT 1 FROM attempt WHERE worker = $1").iter().any(|l| walks(l))
        );
    }
}
