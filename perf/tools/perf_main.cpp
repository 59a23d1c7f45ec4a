// main() of every perf test; the build defines which one.
#include "perf/tools/perf_test.hpp"

int main(int argc, char** argv) {
  return polyrail::perf::run_perf_test(POLYRAIL_PERF_TEST, argc, argv);
}
