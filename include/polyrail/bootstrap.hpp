// UniqueId and Bootstrap: how ranks find each other and prove that they belong together.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

namespace polyrail {

// The addresses where rank 0 listens, and the 256-bit key of the job. Secret: who knows it may
// join.
struct UniqueId {
  static constexpr std::size_t kBytes = 256;  // of the binary form
  std::vector<std::string> addresses;         // "10.0.0.1:4711", "[fe80::1%eth0]:4711"
  std::array<std::uint8_t, 32> key{};

  // Binary form: magic, version, addresses, key, checksum. Garbage and other versions are errors.
  Result<std::array<std::uint8_t, kBytes>> to_bytes() const;
  static Result<UniqueId> from_bytes(const std::uint8_t* bytes, std::size_t size);
  // Text form: "polyrail1:<hex>", fit for a command line or a file.
  Result<std::string> to_text() const;
  static Result<UniqueId> from_text(std::string_view text);
  friend bool operator==(const UniqueId&, const UniqueId&) = default;
};

// The meeting place of all ranks: start-up exchanges go through it, collectives do not. Calls are
// collective: every rank makes the same calls in the same order. One thread at a time.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  virtual int rank() const = 0;
  virtual int rank_count() const = 0;
  // The key of the job: 32 bytes.
  virtual const std::array<std::uint8_t, 32>& key() const = 0;
  // Gathers one message of each rank (any length up to 16 MiB), by rank. The error of one rank
  // (deadline, lost peer, refused stranger) names who is missing in which phase.
  virtual Result<std::vector<std::string>> all_gather(std::string_view phase,
                                                      std::string_view message) = 0;
};

// A listener whose address goes into a unique id. Made where the id is made; the rank 0 that is
// later created in the same process takes it over, in another process it binds the address again.
Result<UniqueId> make_unique_id(const Options& options);

// Joins through a unique id; every rank calls it with its own rank.
Result<std::unique_ptr<Bootstrap>> join(const UniqueId& id, int rank, int rank_count,
                                        const Options& options);
// Joins from torchrun's environment (RANK WORLD_SIZE MASTER_ADDR MASTER_PORT, key in POLYRAIL_KEY
// as 64 hex digits). Without a key the error shows the command that makes one.
Result<std::unique_ptr<Bootstrap>> join_from_environment(const Options& options);
// For ranks that are threads of this process: rank_count connected bootstraps.
Result<std::vector<std::unique_ptr<Bootstrap>>> join_in_process(int rank_count,
                                                                const Options& options);

}  // namespace polyrail
