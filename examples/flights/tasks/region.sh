#!/usr/bin/env bash
# One region's share of the day. Mapped: FENCEPOST_MAP_REGION is the element of `expand`.
# shellcheck source=place.sh
source "$FLIGHTS_CODE/tasks/place.sh"
source "$FLIGHTS_CODE/tasks/mart.sh"
day="$(day)"
region="${FENCEPOST_MAP_REGION:?this task is mapped over region}"
[[ $region =~ ^[a-z]+$ ]] || { echo "not a region: $region" >&2; exit 64; }

mart_replace "region_day/$day/$region" <<SQL
REPLACE INTO region_day (day, region, flights, delay, distance, late)
SELECT '$day', '$region', count(*), coalesce(sum(delay), 0), coalesce(sum(distance), 0), coalesce(sum(late), 0)
  FROM flight WHERE day = '$day' AND region = '$region';
SQL
mart <<< "SELECT '$day, $region: ' || flights || ' flights, ' || late || ' late'
            FROM region_day WHERE day = '$day' AND region = '$region';"
