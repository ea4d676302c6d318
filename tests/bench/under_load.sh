#!/usr/bin/env bash
# One connection's round trips while wrk keeps 64 others busy: percentiles by operation, for kvgate and, beside
# it, for nginx with memc, in front of the same memcached.
#
#   under_load.sh [KVGATE]        SECONDS_EACH=10 CONNECTIONS=64
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kvgate=${1:-build/kvgate}
seconds=${SECONDS_EACH:-10}
connections=${CONNECTIONS:-64}
. "$here/peers.sh"

start_memcached
start_nginx
start_kvgate "memcached://127.0.0.1:$mport"
printf '%-22s %-4s %7s %6s | %7s %7s %7s %7s | %s\n' server op bytes rounds p50 p99 p99.9 max 'over 20 ms'
one() { # NAME BASE
    curl -sS -f -o /dev/null -T "$here/nginx.conf" "$2load"
    wrk -t1 -c"$connections" -d"$((seconds + 2))s" "$2load" >"$dir/wrk" &
    local wrk=$!
    python3 "$here/rounds.py" "$1" "$2" "$seconds"
    wait "$wrk"
    sed -n "s|^Requests.sec: *|$(printf '%-22s' "$1") wrk beside it, requests/s: |p" "$dir/wrk"
}
one kvgate "http://127.0.0.1:$kport/"
one 'nginx, memc' "http://127.0.0.1:$nport/set/"
