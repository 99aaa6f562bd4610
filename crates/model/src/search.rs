//! The search: every reachable state once, the nearest first.
//!
//! A state is known by 128 bits of a keyed hash of all of it, and the way to it by the number of the step
//! that led there: a trace is played again from the beginning. So the first counterexample that is found
//! is one of the shortest, and only the states at the edge are kept whole.
//!
//! stateright was looked at: it brings a web server, and its fingerprints are half as long.

use crate::check;
use crate::mark;
use crate::state::{Broken, State};
use crate::step::{Step, apply, steps};
use crate::world::World;
use core::fmt;
use core::hash::{Hash, Hasher};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// What a search saw.
#[derive(Debug)]
pub struct Found {
    pub states: usize,
    pub steps: usize,
    pub depth: usize,
    /// How often each branch was taken.
    pub marks: BTreeMap<&'static str, usize>,
    pub counterexample: Option<Counterexample>,
}

/// The shortest way to a broken promise.
#[derive(Debug)]
pub struct Counterexample {
    /// The second in which each step was taken.
    pub trace: Vec<(u8, Step)>,
    pub broken: Broken,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (now, step)) in self.trace.iter().enumerate() {
            writeln!(f, "{:3}  {now:2} s  {step}", number + 1)?;
        }
        write!(f, "BROKEN {}: {}", self.broken.invariant, self.broken.what)
    }
}

/// Where a state came from.
#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    /// The number of the step among those of its parent.
    step: u16,
    depth: u16,
}

/// Visits every state of a world until one is broken.
pub fn search(world: &World) -> Found {
    let first = world.beginning();
    let mut seen: HashSet<u128> = HashSet::from([hash(&first)]);
    let mut nodes = vec![Node { parent: 0, step: 0, depth: 0 }];
    let mut edge: VecDeque<(u32, State)> = VecDeque::from([(0, first)]);
    let mut found =
        Found { states: 1, steps: 0, depth: 0, marks: BTreeMap::new(), counterexample: None };
    while let Some((number, state)) = edge.pop_front() {
        let depth = nodes[number as usize].depth;
        for (step, taken) in steps(world, &state).iter().zip(0_u16..) {
            found.steps += 1;
            let next = apply(world, &state, step);
            for mark in mark::of(&state, step, &next) {
                *found.marks.entry(mark).or_default() += 1;
            }
            if !seen.insert(hash(&next)) {
                continue;
            }
            let node = Node { parent: number, step: taken, depth: depth + 1 };
            found.depth = found.depth.max(usize::from(node.depth));
            nodes.push(node);
            found.states += 1;
            if let Some(broken) = check::broken(world, Some(&state), &next) {
                let trace = trace(world, &nodes);
                found.counterexample = Some(Counterexample { trace, broken });
                return found;
            }
            let own = u32::try_from(nodes.len() - 1).unwrap_or(u32::MAX);
            edge.push_back((own, next));
        }
    }
    found
}

/// The way to the last node.
fn trace(world: &World, nodes: &[Node]) -> Vec<(u8, Step)> {
    let mut taken = Vec::new();
    let mut at = nodes.len() - 1;
    while at != 0 {
        taken.push(nodes[at].step);
        at = nodes[at].parent as usize;
    }
    let mut state = world.beginning();
    let mut trace = Vec::new();
    for number in taken.into_iter().rev() {
        let Some(step) = steps(world, &state).into_iter().nth(usize::from(number)) else { break };
        let now = state.now;
        state = apply(world, &state, &step);
        trace.push((now, step));
    }
    trace
}

fn hash(state: &State) -> u128 {
    let mut hasher = Wide(SipHasher13::new());
    state.hash(&mut hasher);
    hasher.0.finish128().as_u128()
}

/// `Hash` writes into it; all 128 bits are read.
struct Wide(SipHasher13);

impl Hasher for Wide {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}
