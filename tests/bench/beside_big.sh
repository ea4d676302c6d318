#!/usr/bin/env bash
# How long small GETs take while values of 300 KB go to and from the same memcached: with lanes,
# and with one lane, which shows what they are for. One worker: with more, the kernel may give the small
# GETs a worker, and with it connections to the store, of their own, and there is nothing to measure.
#
#   beside_big.sh [KVGATE]        ROUNDS=5 SECONDS_EACH=3
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kvgate=${1:-build/kvgate}
. "$here/peers.sh"

start_memcached
printf '%-20s %-14s %7s %7s %7s %7s\n' server 'small GETs, ms' p50 p99 p99.9 max
for lanes in 8 1; do
    kport=$(free_port)
    printf '[store main]\ntype = memcached\nlanes = %d\nservers = 127.0.0.1:%d\n' "$lanes" "$mport" >"$dir/lanes.conf"
    background "$kvgate" -c "$dir/lanes.conf" -l "127.0.0.1:$kport" -w 1
    wait_for_port "$kport"
    python3 "$here/beside_big.py" "kvgate, lanes = $lanes" "http://127.0.0.1:$kport/" "${ROUNDS:-5}" "${SECONDS_EACH:-3}"
done
