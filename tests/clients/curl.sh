#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The curl program: one process, one connection, all requests of a run. curl itself takes the time.
#
#   curl.sh URL ROUNDS put|post|expect|http1.0
#
# put: -T. post: --data-binary. expect: -T, and the body waits for "100 Continue". http1.0: -T with -0, for
# which curl opens a connection per request.
set -eu
url=$1 rounds=$2 mode=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

value() { # SIZE ROUND: numbered lines that say whose they are, cut to SIZE bytes
    awk -v size="$1" -v round="$2" -v name="curl-$mode" 'BEGIN {
        for (line = 0; done < size; line++) {
            text = name " " size " " round " " line "\n"
            printf "%s", substr(text, 1, size - done)
            done += length(text)
        }
    }'
}

common() { # OP SIZE ROUND: what the options file says for every request
    printf 'url = "%scurl-%s-%s"\nsilent\nshow-error\nmax-time = 10\n' "$url" "$mode" "$2"
    printf 'write-out = "%s %s %s %%{http_code} %%{time_total}\\n"\n' "$1" "$2" "$3"
    if [ "$mode" = http1.0 ]; then echo http1.0; fi
}

write() { # SIZE ROUND
    common "$([ "$mode" = post ] && echo post || echo put)" "$1" "$2"
    printf 'output = "/dev/null"\n'
    case $mode in
    post) printf 'data-binary = "@%s/%s.%s"\nheader = "Expect:"\n' "$dir" "$1" "$2" ;;
    expect) printf 'upload-file = "%s/%s.%s"\nheader = "Expect: 100-continue"\n' "$dir" "$1" "$2" ;;
    *) printf 'upload-file = "%s/%s.%s"\nheader = "Expect:"\n' "$dir" "$1" "$2" ;;
    esac
}

for ((round = 0; round <= rounds; round++)); do
    for size in 307200 100; do
        value $size $round >"$dir/$size.$round"
        write $size $round
        printf 'next\n'
        common get $size $round
        printf 'output = "%s/%s.%s.read"\n' "$dir" $size $round
        printf 'next\n'
    done
done | sed '$d' >"$dir/requests"

curl -q -K "$dir/requests" >"$dir/times"

for ((round = 0; round <= rounds; round++)); do
    for size in 307200 100; do
        cmp "$dir/$size.$round" "$dir/$size.$round.read" >&2 || exit 1
    done
done
# Round 0 is for warming up.
awk '{
    good = $1 == "get" ? $4 == 200 : $4 == 201 || $4 == 204
    if (!good) { print "round " $3 ": " $1 " answered " $4 > "/dev/stderr"; exit 1 }
    if ($3 > 0) printf "%s %d %d\n", $1, $2, $5 * 1e6
}' "$dir/times"
