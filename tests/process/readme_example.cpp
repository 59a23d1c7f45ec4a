#include <cstdio>
#include <vector>

#include <polyrail/polyrail.hpp>

int main() {  // one process per rank: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, POLYRAIL_KEY
  auto options = polyrail::options_from_environment();
  if (!options.is_ok()) return std::puts(options.status().message().c_str()), 1;
  auto ranks = polyrail::join_from_environment(options.value());
  if (!ranks.is_ok()) return std::puts(ranks.status().message().c_str()), 1;
  auto comm = polyrail::Communicator::create(std::move(ranks).value(), options.value());
  if (!comm.is_ok()) return std::puts(comm.status().message().c_str()), 1;

  std::vector<float> gradient(1 << 20, 1.0f), mean(gradient.size());
  const polyrail::Status done =
      comm.value()->all_reduce(gradient.data(), mean.data(), mean.size(),
                               polyrail::DataType::kFloat32, polyrail::ReduceOp::kAvg);
  std::printf("rank %d: %s\n", comm.value()->rank(),
              done.is_ok() ? "done" : done.message().c_str());
  return done.is_ok() ? 0 : 1;
}
