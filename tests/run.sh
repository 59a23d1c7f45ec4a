#!/usr/bin/env bash
# Builds everything and runs all tests. Safe to repeat, quick the second time.
#   BUILD_DIR=build        where to build
#   SANITIZE=              "address,undefined" or "thread"
#   Further arguments go to ctest: bash tests/run.sh -R RingAllReduce
set -euo pipefail
cd "$(dirname "$0")/.."

sanitize=${SANITIZE:-}
build_dir=${BUILD_DIR:-build}
bash src/packaging/packages.sh tests || echo "Not all packages are there; going on without them."

cmake -S . -B "$build_dir" -G Ninja -DPOLYRAIL_WERROR=ON -DPOLYRAIL_SANITIZE="$sanitize" \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo
cmake --build "$build_dir"

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:detect_stack_use_after_return=0}
# Third-party plugins of hwloc keep what they allocate when they are unloaded.
[ -z "$sanitize" ] || export HWLOC_PLUGINS_PATH=/nonexistent
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
# One at a time: ranks are threads or processes, and there may be no more than two processors.
# A test that fails is run again: on a busy machine a deadline may pass that has nothing to do with
# the change. One that fails three times has failed.
ctest --test-dir "$build_dir" --output-on-failure --repeat until-pass:3 "$@"
