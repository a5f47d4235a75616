#!/usr/bin/env bash
# A Ray head on this machine for `ray job submit`: cluster/local.sh start|stop [CPUS]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
ray=$here/.venv/bin/ray
state=${RAYSYS_CLUSTER_STATE:-$here/.venv/cluster}
# Only this machine can reach it: everything listens on the loopback interface.
export RAY_AUTH_MODE=disabled RAY_TRAIN_HEALTH_CHECK_INTERVAL_S=0.1

case "${1:-}" in
start)
    cpus=${2:-$(($(nproc) > 4 ? $(nproc) : 4))}
    [ -f "$state" ] && kill -0 "$(cat "$state")" 2>/dev/null && { echo "already running: http://127.0.0.1:8265"; exit 0; }
    PATH=$here/.venv/bin:$PATH nohup "$ray" start --head --block --node-ip-address 127.0.0.1 --port 6379 --num-cpus "$cpus" \
        --include-dashboard true --dashboard-host 127.0.0.1 --dashboard-port 8265 --disable-usage-stats >"$state.log" 2>&1 &
    echo $! >"$state"
    for _ in $(seq 120); do
        if "$here/.venv/bin/python" -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:8265/api/version", timeout=1)' 2>/dev/null; then
            echo "running with $cpus logical CPUs: http://127.0.0.1:8265"
            exit 0
        fi
        kill -0 "$(cat "$state")" 2>/dev/null || break
        sleep 0.5
    done
    echo "the head did not start; see $state.log" >&2
    tail -5 "$state.log" >&2
    exit 1
    ;;
stop)
    [ -f "$state" ] || { echo "not running"; exit 0; }
    kill "$(cat "$state")" 2>/dev/null || true
    for _ in $(seq 60); do kill -0 "$(cat "$state")" 2>/dev/null || break; sleep 0.5; done
    rm -f "$state"
    echo "stopped"
    ;;
*)
    echo "usage: cluster/local.sh start|stop [CPUS]" >&2
    exit 2
    ;;
esac
