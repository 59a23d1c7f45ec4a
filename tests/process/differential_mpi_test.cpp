// Random calls under mpirun, each made by MPI and by Polyrail on the same inputs: the results are
// the same bytes. Inputs are small whole numbers, so that every order of operands gives the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <polyrail/mpi.hpp>
#include <polyrail/polyrail.hpp>

namespace {

using polyrail::Call;
using polyrail::Communicator;
using polyrail::DataType;
using polyrail::ReduceOp;

struct Type {
  DataType own;
  MPI_Datatype mpi;
  std::size_t bytes;
};

struct Group {
  MPI_Comm mpi = MPI_COMM_NULL;
  std::unique_ptr<Communicator> own;
};

template <typename T>
void fill_as(std::vector<std::byte>& bytes, std::mt19937& random) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const auto value = static_cast<T>(random() % 5);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

void fill(std::vector<std::byte>& bytes, DataType type, std::mt19937& random) {
  switch (type) {
    case DataType::kFloat32:
      return fill_as<float>(bytes, random);
    case DataType::kFloat64:
      return fill_as<double>(bytes, random);
    case DataType::kInt64:
      return fill_as<std::int64_t>(bytes, random);
    default:
      return fill_as<std::int8_t>(bytes, random);
  }
}

// Displacements of parts that follow one another.
std::vector<int> begins(const std::vector<int>& counts) {
  std::vector<int> at(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), at.begin(), 0);
  return at;
}

std::vector<std::uint64_t> wide(const std::vector<int>& counts) {
  return {counts.begin(), counts.end()};
}

// One call by both; "" or what was wrong. `random` is in the same state on all ranks.
std::string compare(Group& group, std::mt19937& random) {
  const Type types[] = {{DataType::kFloat32, MPI_FLOAT, 4},
                        {DataType::kFloat64, MPI_DOUBLE, 8},
                        {DataType::kInt64, MPI_INT64_T, 8},
                        {DataType::kInt8, MPI_INT8_T, 1}};
  const std::pair<ReduceOp, MPI_Op> ops[] = {
      {ReduceOp::kSum, MPI_SUM}, {ReduceOp::kMax, MPI_MAX}, {ReduceOp::kMin, MPI_MIN}};
  const int n = group.own->rank_count();
  const int rank = group.own->rank();
  const Type type = types[random() % 4];
  const auto [op, mpi_op] = ops[random() % 3];
  const int root = static_cast<int>(random() % static_cast<unsigned>(n));
  const int count = static_cast<int>(random() % 10 == 0 ? random() % 30000 : random() % 100);
  std::vector<int> counts(n);
  for (int& one : counts) one = static_cast<int>(random() % 3 == 0 ? 0 : random() % 500);
  std::vector<int> matrix(n * n);  // [from * n + to]
  for (int& one : matrix) one = static_cast<int>(random() % 3 == 0 ? 0 : random() % 300);
  std::vector<int> sent(n), received(n);
  for (int peer = 0; peer < n; ++peer) {
    sent[peer] = matrix[rank * n + peer];
    received[peer] = matrix[peer * n + rank];
  }
  const auto sum = [](const std::vector<int>& list) {
    return std::accumulate(list.begin(), list.end(), 0);
  };
  const unsigned kind = random() % 13;
  std::mt19937 own_random(random() + static_cast<unsigned>(rank));
  const std::size_t most =
      type.bytes * static_cast<std::size_t>(std::max({count * n, sum(counts), sum(matrix), 1}));
  std::vector<std::byte> input(most), by_mpi(most, std::byte{0xaa}), by_own(most, std::byte{0xaa});
  fill(input, type.own, own_random);
  const MPI_Datatype t = type.mpi;
  const std::vector<int> at = begins(counts);
  const std::vector<std::uint64_t> wide_counts = wide(counts);
  const std::vector<std::uint64_t> wide_sent = wide(sent);
  const std::vector<std::uint64_t> wide_received = wide(received);
  const void* in = input.data();
  void* theirs = by_mpi.data();
  void* ours = by_own.data();
  const auto c = static_cast<std::uint64_t>(count);
  Call call;
  switch (kind) {
    case 0:
      MPI_Allreduce(in, theirs, count, t, mpi_op, group.mpi);
      call = Call::all_reduce(in, ours, c, type.own, op);
      break;
    case 1:
      MPI_Reduce(in, theirs, count, t, mpi_op, root, group.mpi);
      call = Call::reduce(in, ours, c, type.own, op, root);
      break;
    case 2:
      std::memcpy(theirs, in, type.bytes * c);
      std::memcpy(ours, in, type.bytes * c);
      MPI_Bcast(theirs, count, t, root, group.mpi);
      call = Call::broadcast(ours, ours, c, type.own, root);
      break;
    case 3:
      MPI_Allgather(in, count, t, theirs, count, t, group.mpi);
      call = Call::all_gather(in, ours, c, type.own);
      break;
    case 4:
      MPI_Allgatherv(in, counts[rank], t, theirs, counts.data(), at.data(), t, group.mpi);
      call = Call::all_gather_v(in, ours, wide_counts, type.own);
      break;
    case 5:
      MPI_Reduce_scatter(in, theirs, counts.data(), t, mpi_op, group.mpi);
      call = Call::reduce_scatter_v(in, ours, wide_counts, type.own, op);
      break;
    case 6:
      MPI_Reduce_scatter_block(in, theirs, count, t, mpi_op, group.mpi);
      call = Call::reduce_scatter(in, ours, c, type.own, op);
      break;
    case 7:
      MPI_Alltoall(in, count, t, theirs, count, t, group.mpi);
      call = Call::all_to_all(in, ours, c, type.own);
      break;
    case 8:
      MPI_Alltoallv(in, sent.data(), begins(sent).data(), t, theirs, received.data(),
                    begins(received).data(), t, group.mpi);
      call = Call::all_to_all_v(in, wide_sent, ours, wide_received, type.own);
      break;
    case 9:
      MPI_Gatherv(in, counts[rank], t, theirs, counts.data(), at.data(), t, root, group.mpi);
      call = Call::gather_v(in, static_cast<std::uint64_t>(counts[rank]), ours, wide_counts,
                            type.own, root);
      break;
    case 10:
      MPI_Scatterv(in, counts.data(), at.data(), t, theirs, counts[rank], t, root, group.mpi);
      call = Call::scatter_v(in, wide_counts, ours, static_cast<std::uint64_t>(counts[rank]),
                             type.own, root);
      break;
    case 11:
      MPI_Scan(in, theirs, count, t, mpi_op, group.mpi);
      call = Call::scan(in, ours, c, type.own, op);
      break;
    default:
      // What rank 0 gets is undefined in MPI; ours leaves it alone.
      MPI_Exscan(in, theirs, count, t, mpi_op, group.mpi);
      if (rank == 0) std::memset(theirs, 0xaa, most);
      call = Call::exclusive_scan(in, ours, c, type.own, op);
      break;
  }
  const polyrail::Status status = group.own->run(call);
  if (!status.is_ok()) return status.message();
  // What a rank has no output for both leave alone.
  if (std::memcmp(theirs, ours, most) == 0) return {};
  return std::string(name(call.collective)) + " of " + std::to_string(count) + " " +
         std::string(name(type.own)) + " on rank " + std::to_string(rank) + " of " +
         std::to_string(n) + " differs from MPI's";
}

int run(int call_count) {
  int rank = 0;
  int rank_count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  unsigned seed = rank == 0 ? std::random_device()() : 0;
  if (const char* text = std::getenv("POLYRAIL_TEST_SEED")) {
    seed = static_cast<unsigned>(std::strtoul(text, nullptr, 10));
  }
  MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("seed %u\n", seed);
  polyrail::Options options;
  options.calibration_ms = 20;
  std::vector<Group> groups(2);
  groups[0].mpi = MPI_COMM_WORLD;
  const int color = rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, color, -rank, &groups[1].mpi);
  auto ranks = polyrail::join_mpi(MPI_COMM_WORLD, options);
  if (!ranks.is_ok()) return std::puts(ranks.status().message().c_str()), 1;
  auto whole = Communicator::create(std::move(ranks).value(), options);
  if (!whole.is_ok()) return std::puts(whole.status().message().c_str()), 1;
  groups[0].own = std::move(whole).value();
  auto part = groups[0].own->split(color, -rank, options);
  if (!part.is_ok()) return std::puts(part.status().message().c_str()), 1;
  groups[1].own = std::move(part).value();
  std::mt19937 random(seed);
  std::mt19937 of_part(seed + 1 + static_cast<unsigned>(color));
  int wrong_count = 0;
  for (int i = 0; i < call_count && wrong_count == 0; ++i) {
    const std::string wrong = i % 3 == 2 ? compare(groups[1], of_part) : compare(groups[0], random);
    if (wrong.empty()) continue;
    std::printf("seed %u, call %d: %s\n", seed, i, wrong.c_str());
    ++wrong_count;
  }
  groups[1].own.reset();
  groups[0].own.reset();
  MPI_Comm_free(&groups[1].mpi);
  return wrong_count == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(2000);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
