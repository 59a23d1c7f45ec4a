#!/usr/bin/env bash
# Installs into a scratch folder and builds programs against what was installed: by find_package
# (shared and static) and by pkg-config. Arguments: build folder.
set -euo pipefail
build_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build_dir" --prefix "$work/prefix" >/dev/null
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Polyrail REQUIRED)
add_executable(with_shared user.cpp)
target_link_libraries(with_shared PRIVATE Polyrail::polyrail)
add_executable(with_static user.cpp)
target_link_libraries(with_static PRIVATE Polyrail::polyrail_static)
CMAKE
cat >"$work/user/user.cpp" <<'CPP'
#include <polyrail/polyrail.h>

#include <cstdio>

#include <polyrail/polyrail.hpp>

int main() {
  int version = 0;
  if (polyrailGetVersion(&version) != polyrailSuccess) return 1;
  auto id = polyrail::make_unique_id(polyrail::Options{});
  std::printf("version %d, id %s\n", version, id.is_ok() ? "made" : "not made");
  return id.is_ok() ? 0 : 1;
}
CPP
cat >"$work/user/user.c" <<'C'
#include <polyrail/polyrail.h>
int main(void) {
  int version = 0;
  return polyrailGetVersion(&version) == polyrailSuccess ? 0 : 1;
}
C
cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/user/build" >/dev/null
"$work/user/build/with_shared"
"$work/user/build/with_static"

pc=$(find "$work/prefix" -name pkgconfig -type d)
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs polyrail)
# shellcheck disable=SC2086  # several words
cc -std=c11 -o "$work/user/by_pkg_config" "$work/user/user.c" $flags
LD_LIBRARY_PATH=$(dirname "$pc") "$work/user/by_pkg_config"
if readelf -d "$(dirname "$pc")"/libpolyrail.so | grep -iq 'NEEDED.*mpi'; then
  echo "the library links MPI"
  exit 1
fi
echo "installed, found and linked in three ways"
