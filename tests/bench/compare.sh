#!/usr/bin/env bash
# kvgate beside nginx (memcached_pass for GET, memc for PUT), in front of the same memcached, round after round
# in turns: requests per second by wrk, and CPU microseconds per request of the whole server process.
#
#   compare.sh [KVGATE]        ROUNDS=3 SECONDS_EACH=2 SIZES="100 307200" CONNECTIONS="32 256"
#
# The machine's noise is in every figure: compare within a line, not between runs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kvgate=${1:-build/kvgate}
rounds=${ROUNDS:-3}
seconds=${SECONDS_EACH:-2}
sizes=${SIZES:-100 307200}
connections=${CONNECTIONS:-32 256}
. "$here/peers.sh"
start_memcached
start_nginx
start_kvgate "memcached://127.0.0.1:$mport"

# User and system time of a process and its children (nginx's workers), in clock ticks.
ticks() {
    local sum=0 p
    for p in $1 $(pgrep -P "$1" || true); do
        set -- $(sed 's/.*) //' "/proc/$p/stat")
        sum=$((sum + ${12} + ${13}))
    done
    echo "$sum"
}

# one SERVER PID PORT VERB SIZE CONNECTIONS -> appends "rps cpu_us errors" to a file
one() {
    local before after out n rps errors path
    if [ "$4" = GET ]; then path=/get/$5; else path=/set/$5; fi
    before=$(ticks "$2")
    out=$(wrk -t1 -c"$6" -d"${seconds}s" $([ "$4" = PUT ] && echo "-s $dir/put$5.lua") "http://127.0.0.1:$3$path")
    after=$(ticks "$2")
    n=$(sed -n 's/^ *\([0-9]*\) requests in.*/\1/p' <<< "$out")
    rps=$(sed -n 's/^Requests.sec: *\([0-9.]*\)/\1/p' <<< "$out")
    errors=$(grep -cE 'Non-2xx|Socket errors' <<< "$out" || true)
    awk -v r="$rps" -v t=$((after - before)) -v n="$n" -v e="$errors" -v hz="$(getconf CLK_TCK)" \
        'BEGIN { printf "%.0f %.2f %d\n", r, t / hz * 1e6 / n, e }' >> "$dir/$1.$4.$5.$6"
}
median() { awk -v c="$2" '{ print $c }' "$1" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

for size in $sizes; do
    head -c "$size" /dev/zero | tr '\0' x > "$dir/value"
    printf 'wrk.method = "PUT"\nwrk.body = string.rep("x", %d)\n' "$size" > "$dir/put$size.lua"
    for base in "http://127.0.0.1:$kport" "http://127.0.0.1:$nport"; do
        curl -sS -f -o /dev/null -T "$dir/value" "$base/set/$size"
    done
    # kvgate's key has no leading slash; nginx's has: store what each will read
    curl -sS -f -o /dev/null -T "$dir/value" "http://127.0.0.1:$kport/get/$size"
    printf 'set /get/%d 0 0 %d\r\n' "$size" "$size" > "$dir/command"
    cat "$dir/value" >> "$dir/command"; printf '\r\nquit\r\n' >> "$dir/command"
    (exec 3<>"/dev/tcp/127.0.0.1/$mport"; cat "$dir/command" >&3; cat <&3 >/dev/null)
    for c in $connections; do
        for verb in GET PUT; do
            for round in $(seq "$rounds"); do
                [ -t 2 ] && printf '\r%s %s B, %s connections, round %s  ' "$verb" "$size" "$c" "$round" >&2
                one nginx "$npid" "$nport" $verb "$size" "$c"
                one kvgate "$kpid" "$kport" $verb "$size" "$c"
            done
        done
    done
done
[ -t 2 ] && printf '\r%60s\r' '' >&2

echo "$(nginx -v 2>&1 | sed 's/.*: //'), $(memcached -V), median of $rounds rounds of $seconds s, 2 workers each, wrk -t1"
printf '%-4s %7s %5s | %9s %9s %6s | %9s %9s %6s | %s\n' verb bytes conns 'nginx r/s' 'kvgate' ratio 'us nginx' 'kvgate' ratio errors
for size in $sizes; do
    for c in $connections; do
        for verb in GET PUT; do
            n=$dir/nginx.$verb.$size.$c k=$dir/kvgate.$verb.$size.$c
            awk -v v=$verb -v s="$size" -v c="$c" -v a="$(median "$n" 1)" -v b="$(median "$k" 1)" \
                -v x="$(median "$n" 2)" -v y="$(median "$k" 2)" \
                -v e="$(cat "$n" "$k" | awk '{ e += $3 } END { print e }')" \
                'BEGIN { printf "%-4s %7d %5d | %9d %9d %5.2fx | %9.2f %9.2f %5.2fx | %d\n", v, s, c, a, b, b / a, x, y, y / x, e }'
        done
    done
done
