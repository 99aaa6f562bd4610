//! Inventories: what a worker says that it holds, and what follows for what the store shows in its
//! hands.
//!
//! Every call of a worker that brings attempts into its hands has a number, and so has each inventory.
//! One says nothing about an attempt whose claim, start or take-over came with a later number, or with
//! a call that had no answer yet when the inventory was taken. What it does speak of and does not name
//! is a question to the worker, never a loss: only the worker's answer acts.
//!
//! A large inventory is told as a count and a sum of keyed hashes; whoever finds another sum asks for
//! the names.

use crate::guard::{Guard, Guards};
use crate::id::Token;
use crate::time::{BootInstant, Span};
use siphasher::sip128::SipHasher24;
use std::collections::BTreeSet;

/// Beats from one inventory to the next.
pub const EVERY: u32 = 6;
/// Attempts up to which an inventory names them all each time.
pub const NAMED: usize = 512;
/// The longest from one full list to the next.
pub const FULL_WITHIN: Span = Span::from_mins(5);

/// An attempt that the store shows in a job's hands, not open lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InHand {
    pub token: Token,
    /// The number of the call that claimed it, started it or took it over.
    pub call: i64,
    /// It was handed over, and its new owner owes the answer for longer than it may.
    pub is_owed: bool,
}

/// When an inventory was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken<'a> {
    /// Its own number.
    pub call: i64,
    /// Earlier calls that had no answer then.
    pub unanswered: &'a [i64],
}

impl Taken<'_> {
    /// Whether it says anything about an attempt that came into the worker's hands by that call.
    pub fn speaks_of(&self, call: i64, guards: Guards) -> bool {
        !guards.on(Guard::InventoryNumber) || (call < self.call && !self.unanswered.contains(&call))
    }
}

/// The attempts that a worker is to be asked about: those that its inventory does not name though it
/// speaks of them, and those whose answer is owed for too long.
pub fn questions(
    taken: &Taken<'_>,
    named: &BTreeSet<Token>,
    in_hand: &[InHand],
    guards: Guards,
) -> Vec<Token> {
    let is_missing =
        |one: &InHand| !named.contains(&one.token) && taken.speaks_of(one.call, guards);
    let asked = in_hand.iter().filter(|one| one.is_owed || is_missing(one));
    asked.map(|one| one.token).collect()
}

/// How many there are, and the sum of their hashes: equal for equal sets, and for others only by an
/// accident that nobody can arrange without the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest {
    pub count: u64,
    pub sum: u128,
}

impl Digest {
    /// Of a set of tokens in the hands of the job whose id is the key.
    pub fn of(key: u128, tokens: impl IntoIterator<Item = Token>) -> Self {
        let keyed = SipHasher24::new_with_key(&key.to_le_bytes());
        let hash = |token: Token| keyed.hash(&token.as_i64().to_le_bytes()).as_u128();
        tokens.into_iter().fold(Self::default(), |digest, token| Self {
            count: digest.count + 1,
            sum: digest.sum.wrapping_add(hash(token)),
        })
    }
}

/// What a beat carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Nothing,
    /// Every token.
    Names,
    Digest,
}

/// Which beats of a job carry an inventory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Since the last inventory.
    beats: u32,
    /// When the last full list was sent.
    full_at: Option<BootInstant>,
    is_asked: bool,
}

impl Pace {
    /// It is time for a beat, whether or not one is sent.
    pub const fn turned(&mut self) {
        self.beats = self.beats.saturating_add(1);
    }

    /// The form for the next beat of a worker that holds so many attempts.
    pub fn next(&mut self, held: usize, now: BootInstant) -> Form {
        let is_due = self.full_at.is_none() || self.beats >= EVERY;
        if !is_due && !self.is_asked {
            return Form::Nothing;
        }
        let is_stale = self.full_at.is_none_or(|last| now.since(last) >= FULL_WITHIN);
        self.beats = 0;
        if held > NAMED && !is_stale && !self.is_asked {
            return Form::Digest;
        }
        (self.full_at, self.is_asked) = (Some(now), false);
        Form::Names
    }

    /// The full list is wanted, or what was sent may not have come in: with the next beat.
    pub const fn ask(&mut self) {
        self.is_asked = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(counter: u64) -> Token {
        Token::new(1, counter).unwrap()
    }

    fn at(secs: i64) -> BootInstant {
        BootInstant::from_micros(secs * 1_000_000)
    }

    fn asked(taken: &Taken<'_>, named: &[u64], in_hand: &[InHand]) -> Vec<Token> {
        let named = named.iter().map(|counter| token(*counter)).collect();
        questions(taken, &named, in_hand, Guards::all())
    }

    #[test]
    fn it_says_nothing_about_what_came_later_or_was_under_way() {
        let in_hand = |counter, call| InHand { token: token(counter), call, is_owed: false };
        let all = [in_hand(1, 3), in_hand(2, 5), in_hand(3, 7), in_hand(4, 9)];
        let taken = Taken { call: 8, unanswered: &[5] };
        assert_eq!(asked(&taken, &[], &all), [token(1), token(3)]);
        assert_eq!(asked(&taken, &[3, 1], &all), []);
    }

    #[cfg(feature = "guard-switches")]
    #[test]
    fn without_its_number_it_condemns_what_came_later() {
        let later = InHand { token: token(1), call: 9, is_owed: false };
        let taken = Taken { call: 8, unanswered: &[] };
        let guards = Guards::all().without(Guard::InventoryNumber);
        assert_eq!(asked(&taken, &[], &[later]), []);
        assert_eq!(questions(&taken, &BTreeSet::new(), &[later], guards), [token(1)]);
    }

    #[test]
    fn an_answer_that_is_owed_is_asked_for_even_if_it_is_named() {
        let owed = InHand { token: token(1), call: 0, is_owed: true };
        assert_eq!(asked(&Taken { call: 4, unanswered: &[] }, &[1], &[owed]), [token(1)]);
    }

    /// Of so many beats, five seconds apart.
    fn forms(pace: &mut Pace, held: usize, beats: i64) -> Vec<Form> {
        let mut form = |beat: i64| {
            let form = pace.next(held, at(beat * 5));
            pace.turned();
            form
        };
        (0..beats).map(&mut form).collect()
    }

    #[test]
    fn a_small_inventory_is_named_with_every_sixth_beat() {
        let forms = forms(&mut Pace::default(), NAMED, 13);
        let named = |form: &Form| *form == Form::Names;
        let places: Vec<usize> =
            (0..13).filter(|beat| forms.get(*beat).is_some_and(named)).collect();
        assert_eq!(places, [0, 6, 12]);
    }

    #[test]
    fn a_large_one_is_counted_and_named_every_five_minutes_or_when_it_is_asked_for() {
        let mut pace = Pace::default();
        let forms = forms(&mut pace, NAMED + 1, 61);
        let count = |wanted| forms.iter().filter(|form| **form == wanted).count();
        assert_eq!((count(Form::Names), count(Form::Digest)), (2, 9));
        pace.ask();
        assert_eq!(pace.next(NAMED + 1, at(400)), Form::Names);
        assert_eq!(pace.next(NAMED + 1, at(405)), Form::Nothing);
    }
}
