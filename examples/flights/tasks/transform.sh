#!/usr/bin/env bash
# Rows as the mart wants them: hour, lateness and the region of the origin, into staging/DAY/flights.json.
# shellcheck source=place.sh
source "$FLIGHTS_CODE/tasks/place.sh"
day="$(day)"
rows="$(staging)/rows.json"
flights="$(staging)/flights.json"
late_minutes="${FENCEPOST_PARAM_LATE_MINUTES:-15}"
[[ $late_minutes =~ ^[0-9]+$ ]] || { echo "params.late_minutes is no whole number: $late_minutes" >&2; exit 64; }
[ -s "$rows" ] || { echo "$rows is missing: clear extract" >&2; exit 1; }

sqlite3 -batch -bail :memory: <<SQL | put "$flights"
.import --csv $(dot_path "$cache/airports.csv") airport
.import --csv $(dot_path "$FLIGHTS_CODE/regions.csv") region
WITH r AS (
  SELECT substr(json_extract(value, '\$.date'), 12, 5) AS at, json_extract(value, '\$.delay') AS delay,
         json_extract(value, '\$.distance') AS distance, json_extract(value, '\$.origin') AS origin,
         json_extract(value, '\$.destination') AS destination
    FROM json_each(readfile($(sql_text "$rows")))
)
SELECT json_group_array(json_object(
         'at', at, 'hour', CAST(substr(at, 1, 2) AS INTEGER), 'delay', delay, 'late', delay >= $late_minutes,
         'distance', distance, 'origin', origin, 'destination', destination, 'region', region.region))
  FROM r JOIN airport ON airport.iata = r.origin JOIN region ON region.state = airport.state;
SQL

# Each row needs its airport and region; a join that drops rows must not pass unseen.
count() { sqlite3 :memory: "SELECT json_array_length(readfile($(sql_text "$1")))"; }
[ "$(count "$flights")" = "$(count "$rows")" ] || bad_data "$day: a flight starts in a state without region"
echo "$day: $(count "$flights") flights transformed"
