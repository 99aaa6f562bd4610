//! Lists for people: narrow statements that find the keys of a page by filters and a place in its
//! order. The rows themselves are read by key, in one trip for the page, by the neighbours.
//!
//! A list of words is matched as `,a,b,` against `%,word,%`: exact, because the words hold no
//! comma, and one text for both databases whatever the number of words. An empty filter matches
//! everything.

pub mod attempts;
pub mod dags;
pub mod events;
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
    use super::words;

    #[test]
    fn no_words_are_no_filter() {
        assert_eq!(words([]), "");
        assert_eq!(words(["failed"]), ",failed,");
        assert_eq!(words(["failed", "running"]), ",failed,running,");
    }
}
