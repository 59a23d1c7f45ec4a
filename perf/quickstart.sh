#!/usr/bin/env bash
# From a fresh machine to a measured result: installs the packages, builds, and runs an all-reduce
# over two unlike rails on this one machine, and the same over the fast rail alone.
#
# As root the rails are shaped links between two hosts made of namespaces (perf/lab). Otherwise they
# are throttled by the fault transport, between two threads; the table says which.
#   BUILD_DIR=build   RAILS=800mbit,200mbit (first the fast one; root only)
set -euo pipefail
cd "$(dirname "$0")/.."
build_dir=${BUILD_DIR:-build}
rails=${RAILS:-800mbit,200mbit}

bash src/packaging/packages.sh build || echo "Going on with what is there."
if [ ! -f "$build_dir/build.ninja" ]; then
  cmake -S . -B "$build_dir" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
fi
echo "Building into $build_dir ..."
cmake --build "$build_dir" --target all_reduce_perf polyrail-info |
  { grep -E 'error|FAILED' || true; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=$(cd "$build_dir/bin" && pwd)
perf=$bin/all_reduce_perf
lab=$bin/polyrail-lab
# Fewer bytes than these pass through the rails' token buckets at memory speed.
sizes=(-b 32K -e 64M -f 8 -n 20 -w 5)

if reason=$("$lab" probe 2>&1); then
  how="2 hosts (namespaces), rails of $rails, shaped by the kernel"
  run() { "$lab" --lab "qs$$" ephemeral --hosts 2 --rails "$rails" -- "$@"; }
  run "$perf" "${sizes[@]}" --rails -J "$work/all.json"
  echo
  echo "The same over the first rail alone:"
  POLYRAIL_INTERFACES="=rail0" run "$perf" "${sizes[@]}" -J "$work/one.json"
else
  echo "No lab of shaped links here: $reason"
  how="2 threads, rails of 100 MB/s and 25 MB/s, throttled by the fault transport"
  export POLYRAIL_TRANSPORTS=loopback
  export POLYRAIL_FAULT="loopback:rate=100MB/s;loopback1:rate=25MB/s"
  POLYRAIL_VIRTUAL_RAILS=2 "$perf" -t 2 "${sizes[@]}" --rails -J "$work/all.json"
  echo
  echo "The same over the first rail alone:"
  POLYRAIL_VIRTUAL_RAILS=1 "$perf" -t 2 "${sizes[@]}" -J "$work/one.json"
fi

python3 - "$work/all.json" "$work/one.json" "$how" <<'TABLE'
import json
import sys

both, one = ([row for row in json.load(open(path))["results"]] for path in sys.argv[1:3])
print(f"\nAll-reduce, float sum, {sys.argv[3]}\n")
print(f"{'size':>10} {'all rails':>12} {'fast rail':>12} {'gain':>7} {'of the limit':>13}")
for a, b in zip(both, one):
    bus_a, bus_b = a["out_of_place"]["bus_bw"], b["out_of_place"]["bus_bw"]
    limit = f"{a['percent_of_limit']:11.1f} %" if "percent_of_limit" in a else "-"
    print(f"{a['size']:>10} {1e3 * bus_a:>7.1f} MB/s {1e3 * bus_b:>7.1f} MB/s"
          f" {bus_a / bus_b:>6.2f}x {limit:>13}")
TABLE
