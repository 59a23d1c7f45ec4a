// Every collective over ranks that are threads: sizes, roots, uneven parts, placement, operators.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/collective/expected.hpp"
#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

using testing::Case;
using testing::run_case;

constexpr Collective kCollectives[] = {
    Collective::kAllReduce,     Collective::kReduce,       Collective::kBroadcast,
    Collective::kReduceScatter, Collective::kAllGather,    Collective::kAllToAll,
    Collective::kGather,        Collective::kScatter,      Collective::kBarrier,
    Collective::kScan,          Collective::kExclusiveScan};

bool reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter || collective == Collective::kScan ||
         collective == Collective::kExclusiveScan;
}
bool has_parts(Collective collective) {
  return collective >= Collective::kReduceScatter && collective <= Collective::kScatter;
}

// Two rails of unlike speed between threads, or several kinds of rails at once.
Options options_of(const std::string& transports) {
  if (transports != "mixed") return quick_options(transports);
  Options options = quick_options("loopback");
  options.virtual_rails = 3;
  options.fault = "loopback1:delay=200us;loopback2:rate=200MB/s";
  return options;
}

class Collectives : public ::testing::TestWithParam<std::string> {};

TEST_P(Collectives, GiveWhatTheirDefinitionsSay) {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    run_ranks(ranks, options_of(GetParam()), [&](int, Communicator& communicator) {
      for (const Collective collective : kCollectives) {
        for (const std::uint64_t count : {0, 1, 3, 500, 70001}) {
          if (ranks > 4 && count > 10000) continue;
          for (const bool is_in_place : {false, true}) {
            Case c{.collective = collective, .count = count, .is_in_place = is_in_place};
            c.root = static_cast<int>(count % static_cast<std::uint64_t>(ranks));
            run_case<float>(communicator, c);
            c.shift_bytes = 3;
            run_case<std::int8_t>(communicator, c, 1);
            if (HasFatalFailure()) return;
          }
        }
      }
    });
  }
}

TEST_P(Collectives, TakeUnevenPartsEmptyOnesToo) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_ranks(ranks, options_of(GetParam()), [&](int, Communicator& communicator) {
      std::mt19937 random(7);  // the same on all ranks
      for (const Collective collective : kCollectives) {
        if (!has_parts(collective)) continue;
        for (int round = 0; round < 8; ++round) {
          Case c{.collective = collective, .root = round % ranks, .is_in_place = round % 2 == 1};
          const int square = collective == Collective::kAllToAll ? ranks : 1;
          for (int i = 0; i < ranks * square; ++i) {
            const std::uint64_t sizes[] = {0, 1, random() % 300, random() % 60000};
            c.counts.push_back(sizes[random() % 4]);
          }
          run_case<std::int32_t>(communicator, c);
          if (HasFatalFailure()) return;
        }
      }
    });
  }
}

TEST_P(Collectives, KnowTheirOperators) {
  run_ranks(3, options_of(GetParam()), [&](int, Communicator& communicator) {
    for (const Collective collective : kCollectives) {
      if (!reduces(collective)) continue;
      for (const ReduceOp op : {ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAvg}) {
        const bool is_scan =
            collective == Collective::kScan || collective == Collective::kExclusiveScan;
        if (op == ReduceOp::kAvg && is_scan) continue;
        for (const std::uint64_t count : {5, 40000}) {
          run_case<double>(communicator,
                           {.collective = collective, .count = count, .op = op, .root = 2});
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST_P(Collectives, RunAsynchronouslyInTheOrderStarted) {
  run_ranks(3, options_of(GetParam()), [&](int rank, Communicator& communicator) {
    std::vector<testing::CaseRun<float>> runs;
    runs.reserve(100);
    std::vector<Work> works;
    for (int round = 0; round < 3; ++round) {
      for (const Collective collective : kCollectives) {
        const Case c{.collective = collective, .count = 3000, .root = 1};
        runs.emplace_back(c, rank, 3, round);
        works.push_back(communicator.start(runs.back().call()));
      }
    }
    for (Work& work : works) ASSERT_TRUE(work.wait().is_ok()) << work.wait().message();
    for (auto& run : runs) run.check();
  });
}

// Ranks may differ in what they do in place, but for all_reduce.
TEST_P(Collectives, MayBeInPlaceOnSomeRanks) {
  run_ranks(3, options_of(GetParam()), [&](int rank, Communicator& communicator) {
    for (const Collective collective : kCollectives) {
      if (collective == Collective::kAllReduce) continue;
      for (const std::uint64_t count : {3, 50000}) {
        run_case<float>(
            communicator,
            {.collective = collective, .count = count, .root = 1, .is_in_place = rank == 1});
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(Collectives, AreTheSameInOtherOrders) {
  // Reduce-scatter and all-gather are an all-reduce; exchanging twice gives back what was there.
  run_ranks(4, options_of(GetParam()), [&](int rank, Communicator& communicator) {
    std::mt19937 random(static_cast<unsigned>(rank));
    constexpr std::uint64_t kPart = 5003;
    std::vector<std::int64_t> input(4 * kPart), part(kPart), gathered(4 * kPart), whole(4 * kPart);
    for (auto& value : input) value = random() % 1000;
    ASSERT_TRUE(
        communicator
            .reduce_scatter(std::span<const std::int64_t>(input), std::span(part), ReduceOp::kSum)
            .is_ok());
    ASSERT_TRUE(
        communicator.all_gather(std::span<const std::int64_t>(part), std::span(gathered)).is_ok());
    ASSERT_TRUE(
        communicator
            .all_reduce(std::span<const std::int64_t>(input), std::span(whole), ReduceOp::kSum)
            .is_ok());
    EXPECT_EQ(gathered, whole);
    std::mt19937 shared(9);
    std::vector<std::uint64_t> counts(16);
    for (auto& count : counts) count = shared() % 3000;
    std::vector<std::uint64_t> sent, received;
    for (int peer = 0; peer < 4; ++peer) {
      sent.push_back(counts[rank * 4 + peer]);
      received.push_back(counts[peer * 4 + rank]);
    }
    const auto sum = [](const auto& list) {
      return std::accumulate(list.begin(), list.end(), 0ull);
    };
    std::vector<std::int64_t> there(sum(received)), back(sum(sent));
    input.resize(sum(sent), 17);
    ASSERT_TRUE(
        communicator
            .run(Call::all_to_all_v(input.data(), sent, there.data(), received, DataType::kInt64))
            .is_ok());
    ASSERT_TRUE(
        communicator
            .run(Call::all_to_all_v(there.data(), received, back.data(), sent, DataType::kInt64))
            .is_ok());
    EXPECT_EQ(back, input);
  });
}

// --- operators with something more to them

TEST_P(Collectives, MultiplyInputsByEachRanksFactor) {
  run_ranks(3, options_of(GetParam()), [&](int rank, Communicator& communicator) {
    for (const std::uint64_t count : {4, 30000}) {
      std::vector<float> data(count, 2.0f), out(count);
      const Reduction reduction = Reduction::pre_mul_sum(rank + 1);
      ASSERT_TRUE(
          communicator.all_reduce(std::span<const float>(data), std::span(out), reduction).is_ok());
      EXPECT_EQ(out, std::vector<float>(count, 2.0f * (1 + 2 + 3)));
      EXPECT_EQ(data, std::vector<float>(count, 2.0f));
      ASSERT_TRUE(communicator.all_reduce(std::span(data), reduction).is_ok());
      EXPECT_EQ(data, out);
    }
  });
}

TEST_P(Collectives, WeighTheInputsOfTheRanks) {
  run_ranks(3, options_of(GetParam()), [&](int rank, Communicator& communicator) {
    for (const std::uint64_t count : {4, 30000}) {
      // Weights 1, 2, 5 of 8; values 8, 16, 24.
      const double weights[] = {1, 2, 5};
      std::vector<double> data(count, 8.0 * (rank + 1)), out(count);
      const Reduction reduction = Reduction::weighted_avg(weights[rank]);
      ASSERT_TRUE(communicator.all_reduce(std::span<const double>(data), std::span(out), reduction)
                      .is_ok());
      EXPECT_EQ(out, std::vector<double>(count, 1.0 + 4.0 + 15.0));
      Work work = communicator.start(
          Call::reduce(data.data(), out.data(), count, DataType::kFloat64, reduction, 1));
      std::fill(out.begin(), out.end(), 0.0);
      ASSERT_TRUE(work.wait().is_ok());
      EXPECT_EQ(out, std::vector<double>(count, rank == 1 ? 20.0 : 0.0));
    }
  });
}

// Affine maps x -> a x + b under composition: associative, not commutative.
void compose_maps(const void* a, const void* b, void* out, std::uint64_t count, DataType,
                  void* context) {
  ++*static_cast<std::atomic<int>*>(context);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint32_t f, g;
    std::memcpy(&f, static_cast<const std::byte*>(a) + 4 * i, 4);
    std::memcpy(&g, static_cast<const std::byte*>(b) + 4 * i, 4);
    // Both modulo 251; f first, then g.
    const std::uint32_t scale = (f >> 16) * (g >> 16) % 251;
    const std::uint32_t offset = ((f & 0xffff) * (g >> 16) + (g & 0xffff)) % 251;
    const std::uint32_t both = scale << 16 | offset;
    std::memcpy(static_cast<std::byte*>(out) + 4 * i, &both, 4);
  }
}

TEST_P(Collectives, CallTheUsersOperatorInRankOrder) {
  for (const int ranks : {2, 3, 5}) {
    run_ranks(ranks, options_of(GetParam()), [&](int rank, Communicator& communicator) {
      std::atomic<int> calls{0};
      UserOp op;
      op.combine = compose_maps;
      op.context = &calls;
      const auto value = [](int r, std::uint64_t i) {
        return static_cast<std::uint32_t>((2 + (r * 5 + i) % 240) << 16 | (r * 11 + i * 3) % 251);
      };
      for (const std::uint64_t count : {1, 700, 40001}) {
        std::vector<std::uint32_t> input(count), expected(count), prefix(count), out(count);
        for (std::uint64_t i = 0; i < count; ++i) {
          input[i] = value(rank, i);
          expected[i] = value(0, i);
          std::atomic<int> ignored{0};
          for (int r = 1; r < ranks; ++r) {
            if (r == rank + 1) prefix[i] = expected[i];
            const std::uint32_t next = value(r, i);
            compose_maps(&expected[i], &next, &expected[i], 1, DataType::kUint32, &ignored);
          }
          if (rank == ranks - 1) prefix[i] = expected[i];
        }
        ASSERT_TRUE(
            communicator.all_reduce(std::span<const std::uint32_t>(input), std::span(out), op)
                .is_ok());
        ASSERT_EQ(out, expected);
        ASSERT_TRUE(
            communicator.run(Call::scan(input.data(), out.data(), count, DataType::kUint32, op))
                .is_ok());
        ASSERT_EQ(out, prefix);
        // Exclusively, in place: the first rank gets the identity, the others their predecessors.
        const std::uint32_t identity = 1u << 16;
        UserOp with_identity = op;
        with_identity.identity = &identity;
        std::vector<std::uint32_t> before(count, identity), place = input;
        for (std::uint64_t i = 0; rank > 0 && i < count; ++i) {
          before[i] = value(0, i);
          std::atomic<int> ignored{0};
          for (int r = 1; r < rank; ++r) {
            const std::uint32_t next = value(r, i);
            compose_maps(&before[i], &next, &before[i], 1, DataType::kUint32, &ignored);
          }
        }
        ASSERT_TRUE(communicator
                        .start(Call::exclusive_scan(place.data(), place.data(), count,
                                                    DataType::kUint32, with_identity))
                        .wait()
                        .is_ok());
        ASSERT_EQ(place, before);
        ASSERT_TRUE(communicator
                        .run(Call::reduce(input.data(), out.data(), count, DataType::kUint32, op,
                                          ranks - 1))
                        .is_ok());
        ASSERT_EQ(out, rank == ranks - 1 ? expected : prefix);
      }
      EXPECT_GT(calls, 0);
    });
  }
}

// --- a narrower type on the wire

float as_bfloat16(float value) {  // to nearest even, of finite numbers
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&value, &bits, 4);
  return value;
}

TEST_P(Collectives, RoundWhatTravelsAndSumInFullPrecision) {
  for (const int ranks : {1, 2, 3, 4}) {
    run_ranks(ranks, options_of(GetParam()), [&](int rank, Communicator& communicator) {
      for (const std::uint64_t count : {1, 3000, 100003}) {
        const auto value = [](int r, std::uint64_t i) {
          return static_cast<float>((i * 2654435761u + static_cast<unsigned>(r) * 97u) % 100003) /
                 1000.0f;
        };
        std::vector<float> input(count), out(count);
        for (std::uint64_t i = 0; i < count; ++i) input[i] = value(rank, i);
        Call call =
            Call::all_reduce(input.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum);
        call.wire_type = DataType::kBfloat16;
        for (const bool is_in_place : {false, true}) {
          if (is_in_place) call.output = input.data();
          const Status status = communicator.run(call);
          ASSERT_TRUE(status.is_ok()) << status.message();
          const float* got = static_cast<const float*>(call.output);
          for (std::uint64_t i = 0; i < count; ++i) {
            float sum = as_bfloat16(value(0, i));
            for (int r = 1; r < ranks; ++r) sum += as_bfloat16(value(r, i));
            ASSERT_EQ(got[i], ranks == 1 ? value(0, i) : as_bfloat16(sum)) << i << " of " << count;
          }
        }
      }
    });
  }
}

// --- deterministic mode: sums of numbers that round differently in every order

TEST_P(Collectives, GiveTheSameBitsOverAnyRailsInDeterministicMode) {
  std::vector<std::vector<float>> results;
  for (const char* algorithm : {"", "ring", "one_shot", "direct", "tree"}) {
    for (const int rails : {1, 3}) {
      Options options = options_of(GetParam());
      options.deterministic = true;
      options.algorithm = algorithm;
      if (GetParam() == "loopback") options.virtual_rails = rails;
      std::vector<float> result;
      run_ranks(4, options, [&](int rank, Communicator& communicator) {
        for (const std::uint64_t count : {30, 20011}) {
          std::mt19937 random(static_cast<unsigned>(rank) + 100);
          std::normal_distribution<float> values;
          std::vector<float> input(count), all(count), part(count / 4 + 4);
          for (float& value : input) value = values(random) * (rank == 2 ? 1e6f : 1.0f);
          ASSERT_TRUE(
              communicator.all_reduce(std::span<const float>(input), std::span(all), ReduceOp::kSum)
                  .is_ok());
          ASSERT_TRUE(communicator
                          .reduce_scatter(input.data(), part.data(), count / 4, DataType::kFloat32,
                                          ReduceOp::kSum)
                          .is_ok());
          if (rank != 0) continue;
          // Each part is the same sums as in the whole.
          EXPECT_TRUE(
              std::equal(part.begin(), part.begin() + static_cast<long>(count / 4), all.begin()));
          result.insert(result.end(), all.begin(), all.end());
        }
      });
      results.push_back(result);
    }
  }
  for (const auto& result : results) {
    ASSERT_EQ(std::memcmp(result.data(), results[0].data(), 4 * result.size()), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Collectives,
                         ::testing::Values("loopback", "shm", "tcp", "mixed"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace polyrail
