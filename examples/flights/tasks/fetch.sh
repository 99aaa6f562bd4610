#!/usr/bin/env bash
# Get the data once: npm package vega-datasets, checked by the registry's sha512, two files of it kept and
# checked by their own sums. Safe to run by many at once; offline when the cache is good.
# The data: https://github.com/vega/vega-datasets (BSD-3-Clause).
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
source "$here/place.sh"

package='vega-datasets@3.2.1'
archive='vega-datasets-3.2.1.tgz'
archive_sha512=9534b0640eb2abaa925366199bee9ba882e222f4cf3f19f88ad8abee33c61661c874fbd47d0f690b3cdcae4958cb030980b51b68879291941d88977ac01c4fba
sums='52f0ddd892d4569284b845e17323abc9afb7d303ec8f63251634a20327a610bb  flights-20k.json
903c7169e6d558eefb95295fe2947ec8503135fbb855ea5c737cf4a90ea603ad  airports.csv'

cached() { (cd "$cache" && sha256sum --check --status <<< "$sums") 2> /dev/null; }

download() (
  rm -rf -- "$cache"/unpack.*
  unpack="$(mktemp -d "$cache/unpack.XXXXXX")"
  trap 'rm -rf -- "$unpack"' EXIT
  cd "$unpack"
  echo "fetching $package with npm"
  # A task inherits SSL_CERT_FILE but not node's own variable for the same thing.
  [ -z "${SSL_CERT_FILE:-}" ] || export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-$SSL_CERT_FILE}"
  npm pack --loglevel error "$package" > /dev/null || {
    echo "npm could not fetch $package; is the network there? (needed once, then never again)" >&2
    exit 1
  }
  echo "$archive_sha512  $archive" | sha512sum --check --quiet || {
    echo "$archive is not the file that was published: not used" >&2
    exit 1
  }
  tar -xzf "$archive" package/data/flights-20k.json package/data/airports.csv
  # Airports first: the cache is good only with both, and each arrives whole.
  mv -f package/data/airports.csv package/data/flights-20k.json "$cache/"
)

(
  flock 9
  if cached; then
    echo "in the cache: $package"
  else
    download
    cached || { echo "the files in $cache are not the expected ones" >&2; exit 1; }
  fi
) 9> "$locks/fetch"
