//! Random plays on a SQLite and a PostgreSQL store: every answer is the same, and so are the rows that
//! are left.
//!
//! A play goes on with new seeds until nothing new is seen: no statement with another number of rows
//! answered or changed (none, one, many). The statements are asked themselves, with values of a small
//! world: their functions above them are the same code for both.

mod draw;
mod pair;
mod scene;
mod words;

use crate::place::{Place as _, PostgresDatabase};
use draw::Draw;
use fencepost_store::query::all_statements;
use pair::{Asked, Pair};
use std::collections::BTreeSet;

/// Transactions of one play.
const TRANSACTIONS: u32 = 120;

/// Plays without anything new after which the long form ends.
const PATIENCE: u32 = 60;

/// A statement, and how many rows it answered and how many it changed: none, one, many; or it failed.
type Seen = BTreeSet<(&'static str, &'static str)>;

fn size(count: u64) -> usize {
    usize::try_from(count.min(2)).unwrap()
}

fn seen_as(answer: &pair::Answer) -> &'static str {
    let Ok((rows, changed)) = answer else { return "refused" };
    let (rows, changed) = (size(rows.len() as u64), size(changed.iter().sum()));
    [["0/0", "0/1", "0/many"], ["1/0", "1/1", "1/many"], ["many/0", "many/1", "many/many"]][rows]
        [changed]
}

fn asked(lines: &'static str) -> Vec<Asked> {
    let known = all_statements();
    lines.lines().filter(|line| !line.is_empty()).map(|line| Asked::new(line, &known)).collect()
}

fn all() -> Vec<Asked> {
    let (asked, known) = (asked(words::WORDS), all_statements());
    let named: BTreeSet<&str> = asked.iter().map(|asked| asked.name).collect();
    let missing: Vec<&str> =
        known.iter().map(|stmt| stmt.name).filter(|name| !named.contains(name)).collect();
    assert!(missing.is_empty(), "these have no line in words.rs: {missing:?}");
    asked
}

/// One by its weight; every third time one that was never reached.
fn pick<'a>(asked: &'a [Asked], rare: &[&str], draw: &mut Draw) -> &'a Asked {
    if !rare.is_empty() && draw.one_in(3) {
        let name = rare[usize::try_from(draw.below(rare.len() as u64)).unwrap()];
        return asked.iter().find(|asked| asked.name == name).unwrap();
    }
    let mut place = draw.below(asked.iter().map(|asked| asked.weight).sum());
    for one in asked {
        if place < one.weight {
            return one;
        }
        place -= one.weight;
    }
    &asked[0]
}

/// A scene that leads to rows that chance does not come to.
async fn scene(pair: &Pair, draw: &mut Draw, seen: &mut Seen) {
    let both = pair.begin(false).await;
    for line in asked(scene::SCENE) {
        let answer = pair.step(&both, &line, &[line.set(draw)]).await;
        let how = seen_as(&answer);
        assert!(is_something(how), "{}: {how}", line.name);
        seen.insert((line.name, how));
    }
    both.commit().await;
}

async fn play(pair: &Pair, asked: &[Asked], draw: &mut Draw, seen: &mut Seen) {
    let rare = unreached(asked, seen);
    if draw.one_in(2) {
        scene(pair, draw, seen).await;
    }
    for _ in 0..TRANSACTIONS {
        let first = pick(asked, &rare, draw);
        // What only locks has no place in a transaction that only reads.
        let reads = first.reads() && !first.is_own && draw.one_in(2);
        let both = pair.begin(reads).await;
        let mut next = Some(first);
        let mut is_whole = true;
        while let Some(one) = next.take() {
            let answer = pair.step(&both, one, &one.sets(draw)).await;
            seen.insert((one.name, seen_as(&answer)));
            is_whole = answer.is_ok();
            if is_whole && !reads && !draw.one_in(3) {
                next = Some(pick(asked, &rare, draw));
            }
        }
        if is_whole && !draw.one_in(12) {
            both.commit().await;
        } else {
            pair.roll_back(both);
        }
    }
    pair.compare().await;
}

fn is_something(how: &str) -> bool {
    !["0/0", "refused"].contains(&how)
}

/// Those that never answered a row nor changed one.
fn unreached(asked: &[Asked], seen: &Seen) -> Vec<&'static str> {
    let is_reached = |name| seen.iter().any(|(of, how)| *of == name && is_something(how));
    let own = |one: &&Asked| !is_reached(one.name) && !one.is_own;
    asked.iter().filter(own).map(|one| one.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_databases_answer_the_same_and_hold_the_same() {
    let asked = all();
    let is_long = std::env::var_os("FENCEPOST_TEST_LONG").is_some();
    let first = std::env::var_os("FENCEPOST_TEST_SEED")
        .and_then(|text| text.into_string().ok())
        .and_then(|text| text.parse().ok());
    let first = first.unwrap_or(if is_long { u64::from(std::process::id()) << 20 } else { 1 });
    let most = if is_long { 5_000 } else { 150 };
    let place = PostgresDatabase::new();
    let postgres = place.open();
    let (mut seen, mut quiet) = (Seen::new(), 0);
    for seed in first..first + most {
        // Printed if it fails.
        let left = unreached(&asked, &seen).len();
        println!("seed {seed}: {} kinds of answers seen, {left} not reached", seen.len());
        let pair = Pair::new(&place, &postgres).await;
        let before = seen.len();
        play(&pair, &asked, &mut Draw::new(seed), &mut seen).await;
        quiet = if seen.len() > before { 0 } else { quiet + 1 };
        // The short form ends when every statement was reached.
        if unreached(&asked, &seen).is_empty() && (quiet >= PATIENCE || !is_long) {
            break;
        }
    }
    println!("{} kinds of answers of {} statements", seen.len(), asked.len());
    assert_eq!(unreached(&asked, &seen), Vec::<&str>::new(), "never answered anything");
}
