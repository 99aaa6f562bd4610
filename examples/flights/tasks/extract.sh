#!/usr/bin/env bash
# The day's rows out of the month's file, unchanged, into staging/DAY/rows.json.
# shellcheck source=place.sh
source "$FLIGHTS_CODE/tasks/place.sh"
day="$(day)"
rows="$(staging)/rows.json"

# The file writes its days as 2001/01/05 and sorts by them.
sqlite3 -batch -bail :memory: <<SQL | put "$rows"
SELECT json_group_array(json(value)) FROM json_each(readfile($(sql_text "$cache/flights-20k.json")))
 WHERE substr(json_extract(value, '\$.date'), 1, 10) = '${day//-//}';
SQL

counts="$(sqlite3 -batch -bail :memory: <<SQL
SELECT count(*), coalesce(sum(json_extract(value, '\$.delay')), 0), coalesce(sum(json_extract(value, '\$.distance')), 0)
  FROM json_each(readfile($(sql_text "$rows")));
SQL
)"
IFS='|' read -r count delay distance <<< "$counts"
output rows "$count"
output delay "$delay"
output distance "$distance"
echo "$day: $count flights, delay sum $delay min, distance sum $distance miles"
