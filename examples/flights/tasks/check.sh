#!/usr/bin/env bash
# Is the extract sane? Exit 65 (bad data) names every rule that is broken; the DAG does not retry that.
# shellcheck source=place.sh
source "$FLIGHTS_CODE/tasks/place.sh"
day="$(day)"
rows="$(staging)/rows.json"
[ -s "$rows" ] || { echo "$rows is missing: clear extract" >&2; exit 1; }

broken="$(sqlite3 -batch -bail :memory: <<SQL
.import --csv $(dot_path "$cache/airports.csv") airport
CREATE TABLE r AS SELECT
  json_extract(value, '\$.date') AS date,
  json_type(value, '\$.delay') AS delay_type, json_extract(value, '\$.delay') AS delay,
  json_type(value, '\$.distance') AS distance_type, json_extract(value, '\$.distance') AS distance,
  json_extract(value, '\$.origin') AS origin, json_extract(value, '\$.destination') AS destination
  FROM json_each(readfile($(sql_text "$rows")));
SELECT 'no flights at all' WHERE NOT EXISTS (SELECT 1 FROM r)
UNION ALL SELECT 'row count differs from what extract reported'
  WHERE (SELECT count(*) FROM r) <> ${FENCEPOST_INPUT_EXTRACT_ROWS:-(SELECT count(*) FROM r)}
UNION ALL SELECT count(*) || ' rows of another day' FROM r WHERE date NOT LIKE '${day//-//} __:__' HAVING count(*) > 0
UNION ALL SELECT count(*) || ' delays that are no whole minutes' FROM r WHERE delay_type IS NOT 'integer' HAVING count(*) > 0
UNION ALL SELECT count(*) || ' delays beyond a day' FROM r WHERE abs(delay) > 1440 HAVING count(*) > 0
UNION ALL SELECT count(*) || ' distances that are no miles' FROM r
  WHERE distance_type IS NOT 'integer' OR distance NOT BETWEEN 1 AND 10000 HAVING count(*) > 0
UNION ALL SELECT count(*) || ' flights with an unknown airport' FROM r
  WHERE origin NOT IN (SELECT iata FROM airport) OR destination NOT IN (SELECT iata FROM airport)
     OR origin IS NULL OR destination IS NULL HAVING count(*) > 0;
SQL
)"
[ -z "$broken" ] || bad_data "$day: ${broken//$'\n'/; }"
echo "$day: ${FENCEPOST_INPUT_EXTRACT_ROWS:-all} rows are sane"
