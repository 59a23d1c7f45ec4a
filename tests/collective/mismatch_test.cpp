// Collectives called wrongly: arguments that cannot be right are refused on the rank alone; calls
// on which the ranks do not agree fail on all ranks and show both.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Arguments, ThatCannotBeRightAreRefusedAndBreakNothing) {
  run_ranks(2, quick_options("loopback"), [](int rank, Communicator& communicator) {
    std::vector<float> data(64);
    float* const at = data.data();
    const auto refuse = [&](const Call& call, const std::string& words) {
      for (const Status& status : {communicator.run(call), communicator.start(call).wait()}) {
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << words;
        EXPECT_TRUE(contains(status.message(), words)) << status.message();
        EXPECT_TRUE(contains(status.message(), "rank " + std::to_string(rank)) ||
                    contains(words, "collective"))
            << status.message();
      }
    };
    const DataType type = DataType::kFloat32;
    Call call = Call::barrier();
    call.collective = static_cast<Collective>(99);
    refuse(call, "collective 99 is unknown");
    refuse(Call::broadcast(at, at, 4, type, 2), "root 2 is not one of 2");
    refuse(Call::broadcast(at, at, 4, type, -1), "root -1");
    refuse(Call::reduce(at, at, 4, type, static_cast<ReduceOp>(77), 0), "operator 77");
    refuse(Call::all_gather(at, at + 32, 4, static_cast<DataType>(99)), "data type 99");
    refuse(Call::all_reduce(at, at, 4, type, ReduceOp::kBitXor), "float have no bit_xor");
    refuse(Call::all_reduce(at, at, 4, DataType::kInt4x2, ReduceOp::kSum), "int4x2 have no sum");
    refuse(Call::all_reduce(at, at, 4, DataType::kInt64, ReduceOp::kMaxLoc), "have no max_loc");
    refuse(Call::scan(at, at + 32, 4, type, ReduceOp::kAvg), "no average");
    refuse(Call::all_reduce(at, at, 4, type, Reduction(ReduceOp::kUser)), "no function");
    refuse(Call::all_reduce(at, at, 4, type,
                            Reduction::pre_mul_sum(std::numeric_limits<double>::infinity())),
           "not finite");
    refuse(Call::all_reduce(at, at, 4, type, Reduction::weighted_avg(-1)), "negative");
    refuse(Call::all_gather(nullptr, at, 4, type), "input is null");
    refuse(Call::all_gather(at, nullptr, 4, type), "output is null");
    // In place is the rank's own part, nothing else.
    refuse(Call::all_gather(at, at + 1, 8, type), "overlap");
    refuse(Call::reduce_scatter(at, at + (1 - rank) * 8, 8, type, ReduceOp::kSum), "overlap");
    refuse(Call::all_to_all(at, at + 4, 8, type), "overlap");
    const std::uint64_t one[] = {1};
    const std::uint64_t two[] = {4, 6};
    const std::uint64_t other[] = {5, 5};
    refuse(Call::all_gather_v(at, at + 32, one, type), "needs 2 counts");
    refuse(Call::all_to_all_v(at, two, at + 32, one, type), "counts to receive");
    refuse(Call::all_to_all_v(at, two, at + 32, other, type), "sends itself");
    call = Call::all_reduce(at, at, 4, type, ReduceOp::kSum);
    call.is_uneven = true;
    refuse(call, "no uneven form");
    call = Call::all_reduce(at, at, 4, type, ReduceOp::kSum);
    call.wire_type = DataType::kFloat64;
    refuse(call, "wire type");
    call = Call::all_gather(at, at + 32, 4, type);
    call.wire_type = DataType::kFloat16;
    refuse(call, "wire type");
    const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
    refuse(Call::all_gather(at, at + 32, huge / 4, type), "do not fit");
    const std::uint64_t huge_counts[] = {huge, huge};
    refuse(Call::all_gather_v(at, at + 32, huge_counts, type), "do not fit");
    EXPECT_TRUE(communicator.all_gather(at + rank * 8, at, 8, type).is_ok());
    EXPECT_TRUE(communicator.async_error().is_ok());
  });
}

TEST(Arguments, MayBeNullWhereThereIsNothing) {
  run_ranks(3, quick_options("loopback"), [](int rank, Communicator& communicator) {
    const DataType type = DataType::kFloat32;
    float value = 0;
    for (const Call& call :
         {Call::all_gather(nullptr, nullptr, 0, type), Call::all_to_all(nullptr, nullptr, 0, type),
          Call::reduce_scatter(nullptr, nullptr, 0, type, ReduceOp::kSum),
          Call::broadcast(nullptr, nullptr, 0, type, 1),
          Call::scan(nullptr, nullptr, 0, type, ReduceOp::kSum), Call::barrier()}) {
      EXPECT_TRUE(communicator.run(call).is_ok());
    }
    // Input only where there is a root, output only there.
    EXPECT_TRUE(communicator.broadcast(rank == 1 ? &value : nullptr, &value, 1, type, 1).is_ok());
    EXPECT_TRUE(
        communicator.reduce(&value, rank == 1 ? &value : nullptr, 1, type, ReduceOp::kSum, 1)
            .is_ok());
  });
}

struct Difference {
  std::string name;
  std::function<Call(int rank, float* data)> call;
  std::string first;  // what stands in the message of every rank
  std::string second;
};

class Mismatch : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

std::vector<Difference> differences(std::uint64_t count) {
  const DataType type = DataType::kFloat32;
  const std::string of = " of " + std::to_string(count);
  return {
      {"Collective",
       [=](int rank, float* data) {
         return rank == 0 ? Call::broadcast(data, data, count, type, 0)
                          : Call::all_reduce(data, data, count, type, ReduceOp::kSum);
       },
       "broadcast" + of, "all_reduce" + of},
      {"Root",
       [=](int rank, float* data) {
         return Call::broadcast(data, data, count, type, rank == 0 ? 0 : 1);
       },
       "root 0", "root 1"},
      {"Count",
       [=](int rank, float* data) {
         return Call::all_gather(data + 4 * count, data, count - (rank == 0 ? 1 : 0), type);
       },
       "all_gather of " + std::to_string(count - 1), "all_gather" + of},
      {"Type",
       [=](int rank, float* data) {
         return Call::reduce_scatter(data, data + 4 * count, count,
                                     rank == 0 ? DataType::kInt32 : type, ReduceOp::kSum);
       },
       "int32", "float"},
      {"Operator",
       [=](int rank, float* data) {
         return Call::scan(data, data, count, type, rank == 0 ? ReduceOp::kMax : ReduceOp::kMin);
       },
       "max", "min"},
      {"WireType",
       [=](int rank, float* data) {
         Call call = Call::all_reduce(data, data, count, type, ReduceOp::kSum);
         if (rank == 0) call.wire_type = DataType::kBfloat16;
         return call;
       },
       "bfloat16 on the wire", "all_reduce" + of},
  };
}

TEST_P(Mismatch, IsAnErrorOnBothRanksThatShowsBothCalls) {
  const auto& [transports, size] = GetParam();
  for (const Difference& difference : differences(static_cast<std::uint64_t>(size))) {
    SCOPED_TRACE(difference.name);
    run_ranks(2, quick_options(transports), [&](int rank, Communicator& communicator) {
      std::vector<float> data(static_cast<std::size_t>(size) * 8 + 64);
      Status status = communicator.run(difference.call(rank, data.data()));
      // A root may be done before it learns that nobody wanted what it sent.
      if (status.is_ok()) status = communicator.barrier();
      ASSERT_FALSE(status.is_ok());
      EXPECT_TRUE(contains(status.message(), difference.first)) << status.message();
      EXPECT_TRUE(contains(status.message(), difference.second)) << status.message();
    });
  }
}

TEST_P(Mismatch, OfUnevenCountsIsAnErrorOnBothRanks) {
  const auto& [transports, size] = GetParam();
  const auto count = static_cast<std::uint64_t>(size);
  run_ranks(2, quick_options(transports), [&](int rank, Communicator& communicator) {
    std::vector<float> data(8 * count + 64);
    const std::vector<std::uint64_t> counts = {count, rank == 0 ? count : count + 1};
    Status status = communicator.run(
        Call::all_gather_v(data.data() + 4 * count, data.data(), counts, DataType::kFloat32));
    if (status.is_ok()) status = communicator.barrier();
    ASSERT_FALSE(status.is_ok());
    EXPECT_TRUE(contains(status.message(), "all_gather of " + std::to_string(2 * count)) &&
                contains(status.message(), std::to_string(2 * count + 1)))
        << status.message();
  });
  // Of an exchange nobody knows all counts: the receiver finds out.
  run_ranks(2, quick_options(transports), [&](int rank, Communicator& communicator) {
    std::vector<float> in(4 * count + 8), out(4 * count + 8);
    const std::vector<std::uint64_t> sent = {count, rank == 0 ? count + 2 : count};
    const std::vector<std::uint64_t> received = {count, count};
    const std::vector<std::uint64_t> swapped = {sent[1], sent[0]};
    Status status = communicator.run(
        rank == 0
            ? Call::all_to_all_v(in.data(), sent, out.data(), received, DataType::kFloat32)
            : Call::all_to_all_v(in.data(), received, out.data(), received, DataType::kFloat32));
    if (status.is_ok()) status = communicator.barrier();
    ASSERT_FALSE(status.is_ok());
    EXPECT_TRUE(contains(status.message(), "rank 0 sends")) << status.message();
  });
}

TEST_P(Mismatch, OfNothingAgainstSomethingIsAnErrorOnBothRanks) {
  const auto& [transports, size] = GetParam();
  const auto count = static_cast<std::uint64_t>(size);
  for (const bool sends : {false, true}) {  // what rank 0 does, and rank 1 does not know
    run_ranks(2, quick_options(transports), [&](int rank, Communicator& communicator) {
      std::vector<float> in(2 * count), out(2 * count);
      const std::uint64_t to_1 = (rank == 0) == sends ? count : 0;
      const std::uint64_t to_0 = 0;
      const std::vector<std::uint64_t> sent = {0, rank == 0 ? to_1 : 0};
      const std::vector<std::uint64_t> received = {rank == 1 ? to_1 : to_0, 0};
      Status status = communicator.run(Call::all_to_all_v(
          in.data(), rank == 0 ? sent : std::vector<std::uint64_t>{to_0, 0}, out.data(),
          rank == 1 ? received : std::vector<std::uint64_t>{0, to_0}, DataType::kFloat32));
      if (status.is_ok()) status = communicator.barrier();
      ASSERT_FALSE(status.is_ok());
      EXPECT_TRUE(contains(status.message(), "rank 0 sends")) << status.message();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Mismatch,
                         ::testing::Combine(::testing::Values("loopback", "shm", "tcp"),
                                            ::testing::Values(6, 60000)),
                         [](const auto& one) {
                           return std::get<0>(one.param) + std::to_string(std::get<1>(one.param));
                         });

}  // namespace
}  // namespace polyrail
