#!/usr/bin/env bash
# Draw the report of all days that are in the mart. Whoever comes last sees every day: the mart is read only
# after the lock is taken, and both files are put in place by rename.
# shellcheck source=place.sh
source "$FLIGHTS_CODE/tasks/place.sh"
source "$FLIGHTS_CODE/tasks/mart.sh"

# The mart's content as one JSON document; the drawing knows nothing of SQL.
snapshot() {
  mart <<SQL
.import --csv --schema temp $(dot_path "$cache/airports.csv") airport
SELECT json_object(
  'days', (SELECT json_group_array(json_object('day', day, 'flights', flights, 'delay', delay, 'distance', distance,
             'late', late, 'run_id', run_id, 'attempt', attempt)) FROM (SELECT * FROM day ORDER BY day)),
  'regions', (SELECT json_group_array(json_object('day', day, 'region', region, 'flights', flights, 'delay', delay,
             'late', late)) FROM (SELECT r.* FROM region_day r JOIN day USING (day) ORDER BY day, region)),
  'hours', (SELECT json_group_array(json_object('day', day, 'hour', hour, 'flights', n, 'delay', delay))
             FROM (SELECT f.day, hour, count(*) AS n, sum(f.delay) AS delay FROM flight f JOIN day USING (day)
                   GROUP BY 1, 2 ORDER BY 1, 2)),
  'airports', (SELECT json_group_array(json_object('iata', iata, 'city', city, 'state', state, 'latitude', CAST(latitude AS REAL),
             'longitude', CAST(longitude AS REAL), 'flights', n, 'delay', delay))
             FROM (SELECT a.*, count(*) AS n, sum(f.delay) AS delay FROM flight f JOIN day USING (day)
                   JOIN temp.airport a ON a.iata = f.origin GROUP BY a.iata ORDER BY n DESC, a.iata)),
  'worst', (SELECT json_group_array(json_object('day', day, 'at', at, 'origin', origin, 'destination', destination,
             'delay', delay)) FROM (SELECT w.* FROM worst w JOIN day USING (day) ORDER BY day, rank)));
SQL
}

(
  flock 9
  aside="$report_dir/aside"          # under the lock there is one writer, so one name is enough
  rm -rf -- "$aside"
  mkdir -p "$aside"
  snapshot > "$aside/snapshot.json"
  node "$FLIGHTS_CODE/report/build.js" "$aside/snapshot.json" "$aside"
  mv -f -- "$aside/index.html" "$report_dir/index.html"
  mv -f -- "$aside/totals.json" "$report_dir/totals.json"
  rm -rf -- "$aside"
  echo "$report_dir/index.html"
) 9> "$locks/report"
