# Sourced by the scripts beside it: starts the servers that are compared, each on a free port of loopback,
# and ends them all when the script ends. $here is the folder of these files, $dir a temporary one.
dir=$(mktemp -d)
chmod 755 "$dir"
pids=()

peers_cleanup() {
    # newest first: kvgate and nginx before the stores behind them
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do kill "${pids[$i]}" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap peers_cleanup EXIT
trap 'exit 130' INT TERM HUP

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

wait_for_port() {
    for _ in $(seq 200); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.05
    done
    echo "nothing listens on $1" >&2
    exit 1
}

# background COMMAND...: its pid is in $last
background() {
    "$@" >"$dir/out.${#pids[@]}" 2>&1 &
    last=$!
    pids+=("$last")
}

start_memcached() { # -> $mport
    local user=()
    [ "$(id -u)" = 0 ] && user=(-u nobody)
    mport=$(free_port)
    background memcached -l 127.0.0.1 -p "$mport" -U 0 -t 1 -m 256 "${user[@]}"
    wait_for_port "$mport"
}

start_nginx() { # needs $mport -> $nport, $npid
    nport=$(free_port)
    sed "s|@DIR@|$dir|g; s|@PORT@|$nport|g; s|@MEMCACHED@|$mport|g; s|@POOL@|512|g" \
        "$here/nginx.conf" > "$dir/nginx.conf"
    background nginx -c "$dir/nginx.conf" -e "$dir/nginx.err"
    npid=$last
    wait_for_port "$nport"
}

start_kvgate() { # STORE [DIALECT] -> $kport, $kpid
    kport=$(free_port)
    if [ $# -gt 1 ]; then
        printf '[store s]\ntype = memcached\nservers = %s\ndialect = %s\n' "${1#memcached://}" "$2" > "$dir/$2.conf"
        background "$kvgate" -c "$dir/$2.conf" -l "127.0.0.1:$kport" -w 2
    else
        background "$kvgate" -l "127.0.0.1:$kport" -s "$1" -w 2
    fi
    kpid=$last
    wait_for_port "$kport"
}

start_kvgate_config() { # FILE -> $kport, $kpid
    kport=$(free_port)
    background "$kvgate" -c "$1" -l "127.0.0.1:$kport" -w 2
    kpid=$last
    wait_for_port "$kport"
}

start_webdis() { # -> $wport
    local rport
    rport=$(free_port)
    wport=$(free_port)
    background redis-server --port "$rport" --bind 127.0.0.1 --save '' --appendonly no --dir "$dir"
    wait_for_port "$rport"
    sed "s|@DIR@|$dir|g; s|@PORT@|$wport|g; s|@REDIS@|$rport|g" "$here/webdis.json" > "$dir/webdis.json"
    background webdis "$dir/webdis.json"
    wait_for_port "$wport"
}
