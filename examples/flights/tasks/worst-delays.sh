#!/usr/bin/env bash
# The five worst flights of a bad day. The DAG skips this on good days.
# shellcheck source=place.sh
source "$FLIGHTS_CODE/tasks/place.sh"
source "$FLIGHTS_CODE/tasks/mart.sh"
day="$(day)"

mart_replace "worst/$day" <<SQL
DELETE FROM worst WHERE day = '$day';
INSERT INTO worst (day, rank, at, origin, destination, delay)
SELECT '$day', row_number() OVER w, at, origin, destination, delay FROM flight WHERE day = '$day'
WINDOW w AS (ORDER BY delay DESC, at, origin, destination) ORDER BY delay DESC, at, origin, destination LIMIT 5;
SQL
mart <<< "SELECT at || '  ' || origin || ' to ' || destination || '  ' || delay || ' min' FROM worst WHERE day = '$day' ORDER BY rank;"
