# Sourced by ./run and ./test: say what happens, and see that the tools are there.
# shellcheck shell=bash

say() { printf '== %s\n' "$*"; }

# need_tools COMMAND:PACKAGE...: install the packages whose commands are missing, by apt-get where that is
# possible, else say what to install. Touches nothing when everything is there, so it works offline.
need_tools() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%%:*}" > /dev/null || missing+=("${pair#*:}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then as_root=(sudo); fi
  if ! command -v apt-get > /dev/null || { [ ${#as_root[@]} -gt 0 ] && ! command -v sudo > /dev/null; }; then
    echo "please install these (Debian's names) and try again: ${missing[*]}" >&2
    exit 1
  fi
  say "installing: ${missing[*]} (apt-get)"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q > /dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" > /dev/null
}

need_rust() {
  command -v cargo > /dev/null || [ ! -f "$HOME/.cargo/env" ] || source "$HOME/.cargo/env"
  command -v cargo > /dev/null || {
    echo "please install Rust (https://rustup.rs) and try again; rust-toolchain.toml names the version" >&2
    exit 1
  }
}

# processes_of HOME: pid and command of each process that belongs to a home: its server, shims and tasks.
processes_of() {
  local cmdline text pid
  for cmdline in /proc/[0-9]*/cmdline; do
    text="$(tr '\0' ' ' 2> /dev/null < "$cmdline")" || continue
    pid="${cmdline#/proc/}" pid="${pid%/cmdline}"
    case "$text" in
      *"fencepost standalone --home $1 "* | *" shim $1/"* | *" $1/flights/code/"*) echo "$pid $text" ;;
    esac
  done
}
