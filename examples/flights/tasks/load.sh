#!/usr/bin/env bash
# Replace the day's rows in the mart: one transaction, behind the fence of this day.
# shellcheck source=place.sh
source "$FLIGHTS_CODE/tasks/place.sh"
source "$FLIGHTS_CODE/tasks/mart.sh"
day="$(day)"
flights="$(staging)/flights.json"
[ -s "$flights" ] || { echo "$flights is missing: clear transform" >&2; exit 1; }
mart_ready

mart_replace "flight/$day" <<SQL
DELETE FROM flight WHERE day = '$day';
INSERT INTO flight (day, at, hour, delay, late, distance, origin, destination, region)
SELECT '$day', json_extract(value, '\$.at'), json_extract(value, '\$.hour'), json_extract(value, '\$.delay'),
       json_extract(value, '\$.late'), json_extract(value, '\$.distance'), json_extract(value, '\$.origin'),
       json_extract(value, '\$.destination'), json_extract(value, '\$.region')
  FROM json_each(readfile($(sql_text "$flights")));
SQL

counts="$(mart <<< "SELECT count(*), CAST(round(avg(delay)) AS INTEGER) FROM flight WHERE day = '$day';")"
IFS='|' read -r count mean_delay <<< "$counts"
output flights "$count"
output mean_delay "$mean_delay"
echo "$day: $count flights loaded, mean delay $mean_delay min"
