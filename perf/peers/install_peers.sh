#!/bin/sh
# Installs the packages of the peers (Debian, root): MPI, Gloo, UCX, and what runs and plots them.
# Configure and build again afterwards, so that their programs are built.
set -eu

packages="openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev ucx-utils
  iproute2 iperf3 python3-matplotlib"

missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "install ok installed" ||
    missing="$missing $package"
done
if [ -z "$missing" ]; then
  echo "install_peers: everything is installed"
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "install_peers: needs root to install:$missing" >&2
  exit 3
fi
apt-get update -qq
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
echo "install_peers: installed:$missing"
