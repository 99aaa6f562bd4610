//! One component of a calendar event: `*`, `*/n`, or a list of values, ranges and repetitions.

/// What a component may hold.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) name: &'static str,
    least: u32,
    greatest: u32,
}

pub(super) const SECOND: Bounds = Bounds { name: "second", least: 0, greatest: 59 };
pub(super) const MINUTE: Bounds = Bounds { name: "minute", least: 0, greatest: 59 };
pub(super) const HOUR: Bounds = Bounds { name: "hour", least: 0, greatest: 23 };
pub(super) const DAY: Bounds = Bounds { name: "day", least: 1, greatest: 31 };
pub(super) const MONTH: Bounds = Bounds { name: "month", least: 1, greatest: 12 };
pub(super) const YEAR: Bounds = Bounds { name: "year", least: 1970, greatest: 2199 };

/// A component: nothing in it means any value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Component {
    items: Vec<Item>,
}

/// Values from one to another, by steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    from: u32,
    to: u32,
    step: u32,
    /// `from/step`, without an end.
    is_open: bool,
}

impl Component {
    /// `None` if it is none.
    pub(super) fn read(text: &str, bounds: &Bounds) -> Option<Self> {
        if text == "*" {
            return Some(Self { items: Vec::new() });
        }
        let items: Option<Vec<Item>> = text.split(',').map(|part| item(part, bounds)).collect();
        items.map(|items| Self { items })
    }

    /// As a field of a cron expression.
    pub(super) fn cron(&self) -> String {
        if self.items.is_empty() {
            return "*".into();
        }
        let text = |item: &Item| match *item {
            Item { from, to, .. } if from == to => from.to_string(),
            Item { from, to, step: 1, .. } => format!("{from}-{to}"),
            Item { from, to, step, .. } => format!("{from}-{to}/{step}"),
        };
        let items: Vec<String> = self.items.iter().map(text).collect();
        items.join(",")
    }

    /// All its values where they count back from the end of a month, ascending: steps lead towards the end.
    pub(super) fn values_from_end(&self, bounds: &Bounds) -> Vec<u32> {
        let back = |item: &Item| {
            let (first, last) =
                if item.is_open { (item.from, bounds.least) } else { (item.to, item.from) };
            let step = usize::try_from(item.step).unwrap_or(1);
            (last..=first).rev().step_by(step).collect::<Vec<u32>>()
        };
        let mut values: Vec<u32> = self.items.iter().flat_map(back).collect();
        values.sort_unstable();
        values.dedup();
        if self.items.is_empty() { self.values(bounds) } else { values }
    }

    /// All its values, ascending.
    pub(super) fn values(&self, bounds: &Bounds) -> Vec<u32> {
        let every = [Item { from: bounds.least, to: bounds.greatest, step: 1, is_open: false }];
        let items = if self.items.is_empty() { every.as_slice() } else { self.items.as_slice() };
        let mut values: Vec<u32> = items
            .iter()
            .flat_map(|item| (item.from..=item.to).step_by(usize::try_from(item.step).unwrap_or(1)))
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

fn item(part: &str, bounds: &Bounds) -> Option<Item> {
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(number(step).filter(|step| *step > 0)?)),
        None => (part, None),
    };
    let within = |n: &u32| (bounds.least..=bounds.greatest).contains(n);
    let value = |text: &str| number(text).map(|n| year(n, text, bounds)).filter(within);
    let (from, to) = match range.split_once("..") {
        Some((from, to)) => (value(from)?, value(to)?),
        // `*/2` in a list begins with the least value.
        None if range == "*" => (bounds.least, bounds.greatest),
        None => {
            let from = value(range)?;
            (from, if step.is_some() { bounds.greatest } else { from })
        }
    };
    let is_open = step.is_some() && !range.contains("..");
    (from <= to).then_some(Item { from, to, step: step.unwrap_or(1), is_open })
}

/// A year of two digits is one of 1970 to 2069.
fn year(number: u32, text: &str, bounds: &Bounds) -> u32 {
    match (bounds.name, text.len(), number) {
        ("year", ..=2, 70..=99) => 1900 + number,
        ("year", ..=2, 0..=69) => 2000 + number,
        _ => number,
    }
}

fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}
