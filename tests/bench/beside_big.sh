#!/usr/bin/env bash
# How long small GETs take while values of 300 KB go to and from the same memcached: with lanes,
# and with one lane, which shows what they are for.
#
#   beside_big.sh [KVGATE]        ROUNDS=5 SECONDS_EACH=3
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kvgate=${1:-build/kvgate}
. "$here/peers.sh"

start_memcached
printf '%-24s %-14s %7s %7s %7s %7s\n' server 'small GETs, ms' p50 p99 p99.9 max
for lanes in 8 1; do
    printf '[server]\nlisten = 127.0.0.1:0\n[store main]\ntype = memcached\nlanes = %d\nservers = 127.0.0.1:%d\n' \
        "$lanes" "$mport" >"$dir/lanes.conf"
    start_kvgate_config "$dir/lanes.conf"
    python3 "$here/beside_big.py" "kvgate, lanes = $lanes" "http://127.0.0.1:$kport/" "${ROUNDS:-5}" "${SECONDS_EACH:-3}"
done
