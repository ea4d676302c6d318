#!/usr/bin/env bash
# What kvstall says of kvgate and of others, each on this machine: a table of verdicts, and pictures of latency by
# size for a client that writes header and body apart with Nagle's algorithm on.
#
#   verdicts.sh [KVGATE [KVSTALL [FOLDER]]]        the pictures go to FOLDER (build/stall)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kvgate=${1:-build/kvgate}
kvstall=${2:-build/kvstall}
folder=${3:-build/stall}
. "$here/peers.sh"
mkdir -p "$folder"

# probe NAME ARGUMENTS...: one row of the table
probe() {
    local name=$1 status=0
    shift
    [ -t 2 ] && printf '\r%-60s' "$name" >&2
    "$kvstall" probe --json "$@" > "$dir/probe" || status=$?
    python3 "$here/verdict_row.py" "$name" "$status" < "$dir/probe" >> "$dir/table"
}

start_memcached
start_nginx
start_webdis
probe 'nginx, memcached_pass (GET)' "http://127.0.0.1:$nport/get/"
probe 'nginx, memc' "http://127.0.0.1:$nport/set/"
probe 'webdis and redis' -R /GET/ -D /DEL/ -M GET "http://127.0.0.1:$wport/SET/"

pport=$(free_port)
mkdir "$dir/files"
background python3 -m http.server --protocol HTTP/1.1 --bind 127.0.0.1 --directory "$dir/files" "$pport"
wait_for_port "$pport"
probe "Python's http.server, HTTP/1.1 (GET)" "http://127.0.0.1:$pport/"

start_kvgate "memcached://127.0.0.1:$mport" text
probe 'kvgate, memcached, text' "http://127.0.0.1:$kport/"
start_kvgate "memcached://127.0.0.1:$mport" meta
probe 'kvgate, memcached, meta' "http://127.0.0.1:$kport/"
meta=$kport
start_kvgate "embedded:$dir/embedded"
probe 'kvgate, embedded' "http://127.0.0.1:$kport/"
[ -t 2 ] && printf '\r%60s\r' '' >&2

echo '| server | good client | worst client | verdict |'
echo '| --- | --- | --- | --- |'
cat "$dir/table"

if command -v gnuplot >/dev/null; then
    "$kvstall" sweep --apart --nagle --plot "$folder/nginx.svg" "http://127.0.0.1:$nport/set/" > "$folder/nginx.txt" || true
    "$kvstall" sweep --apart --nagle --plot "$folder/kvgate.svg" "http://127.0.0.1:$meta/" > "$folder/kvgate.txt" || true
    echo
    echo "pictures: $folder/nginx.svg, $folder/kvgate.svg; the same as tables: $folder/*.txt"
fi
