//! The next time that a clock on the wall of a zone shows a certain time.

use crate::schedule::Zone;
use crate::time::Timestamp;
use jiff::civil::Time;
use jiff::tz::Disambiguation;

/// That local time on the local day of `now`. Where the clock skips it, the instant after the gap;
/// where it shows it twice, the first.
pub(super) fn today_at(now: Timestamp, zone: &str, time: &str) -> Option<Timestamp> {
    let time: Time = time.parse().ok()?;
    let zone = Zone::get(zone)?;
    let day = now.to_jiff().to_zoned(zone.as_jiff().clone()).date();
    let ambiguous = zone.as_jiff().to_ambiguous_zoned(day.to_datetime(time));
    let at = ambiguous.disambiguate(Disambiguation::Compatible).ok()?;
    Some(Timestamp::from_jiff(at.timestamp()))
}
