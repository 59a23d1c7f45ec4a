#!/usr/bin/env bash
# Installs the Debian packages that a purpose needs: build or tests. Does nothing if they are
# there. Without root, or on another system, says what is missing and ends with 1.
set -euo pipefail

build="cmake ninja-build g++ pkg-config libhwloc-dev libhwy-dev libcli11-dev libspdlog-dev libfmt-dev
  nlohmann-json3-dev libsodium-dev libgtest-dev libgmock-dev libbenchmark-dev"
lab="iproute2 util-linux python3 procps"
tests="$build $lab libopenmpi-dev openmpi-bin clang-format iperf3"

case "${1:-}" in
  build) wanted="$build $lab" ;;
  tests) wanted="$tests" ;;
  *)
    echo "usage: $0 build|tests" >&2
    exit 2
    ;;
esac

missing=""
for package in $wanted; do
  state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$state" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "These packages are missing and can only be installed by root on Debian:$missing" >&2
  exit 1
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# A fresh machine has no lists, and old lists name packages that are gone.
apt-get update -qq
# shellcheck disable=SC2086  # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
