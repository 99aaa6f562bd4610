#!/usr/bin/env bash
# Do the regions add up to the day? Then the day is complete and gets its row.
# shellcheck source=place.sh
source "$FLIGHTS_CODE/tasks/place.sh"
source "$FLIGHTS_CODE/tasks/mart.sh"
day="$(day)"
run_id="$(sql_text "${FENCEPOST_RUN_ID:-by hand}")"

parts="$(mart <<< "SELECT sum(flights), sum(delay), sum(distance), sum(late) FROM region_day WHERE day = '$day';")"
whole="$(mart <<< "SELECT count(*), sum(delay), sum(distance), sum(late) FROM flight WHERE day = '$day';")"
[ "$parts" = "$whole" ] || bad_data "$day: the regions add up to $parts, the day has $whole"

mart_replace "day/$day" <<SQL
REPLACE INTO day (day, flights, delay, distance, late, run_id, attempt, token)
SELECT '$day', count(*), sum(delay), sum(distance), sum(late), $run_id,
       ${FENCEPOST_ATTEMPT_NUMBER:-1}, ${FENCEPOST_FENCING_TOKEN:-0}
  FROM flight WHERE day = '$day';
SQL
echo "$day: $whole (flights, delay, distance, late): the regions add up"
