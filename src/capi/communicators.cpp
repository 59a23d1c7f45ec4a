// The C API: how communicators are made, asked and ended.
#include <cstddef>
#include <string_view>

#include "src/capi/groups.hpp"

using namespace polyrail;
using namespace polyrail::capi;

namespace {

constexpr unsigned kConfigMagic = 0x706f6c79u;

// What a config says, on top of `base`.
struct Wishes {
  Options options;
  bool is_blocking = true;
};

Result<Wishes> read_config(const char* function, const polyrailConfig_t* config, Options base) {
  Wishes wishes{std::move(base)};
  if (config == nullptr) return wishes;
  // Programs built with an older header have a shorter one.
  constexpr std::size_t kFirstSize = offsetof(polyrailConfig_t, blocking);
  if (config->magic != kConfigMagic || config->size < kFirstSize) {
    return invalid(function, "the config was not made with POLYRAIL_CONFIG_INITIALIZER");
  }
  if (config->size > kFirstSize) {
    if (config->blocking != 0 && config->blocking != 1) {
      return invalid(function, "config: blocking is " + std::to_string(config->blocking) +
                                   ", neither 0 nor 1");
    }
    wishes.is_blocking = config->blocking == 1;
  }
  std::string_view text = config->options == nullptr ? "" : config->options;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return invalid(function, "config: '" + std::string(line) + "' is not name=value");
    }
    const Status status =
        set_option(wishes.options, line.substr(0, equals), line.substr(equals + 1));
    if (!status.is_ok()) return status;
  }
  return wishes;
}

Result<Wishes> read_config(const char* function, const polyrailConfig_t* config) {
  Result<Options> options = options_from_environment();
  if (!options.is_ok()) return options.status();
  return read_config(function, config, std::move(options).value());
}

Result<std::unique_ptr<Communicator>> create(Result<std::unique_ptr<Bootstrap>> bootstrap,
                                             const Options& options) {
  if (!bootstrap.is_ok()) return bootstrap.status();
  return Communicator::create(std::move(bootstrap).value(), options);
}

// The handle of what make() makes, if it can be made.
Status finish(polyrailComm_t* handle, std::unique_ptr<polyrailComm> comm,
              const MakeCommunicator& make) {
  comm->creation->run(make);
  if (Status status = comm->creation->status(); !status.is_ok()) return status;
  if (comm->family != nullptr) comm->family->join();
  *handle = comm.release();
  return ok();
}

// Makes a communicator: now, at the end of the open group, or in the background.
Status start_making(polyrailComm_t* handle, const Wishes& wishes, MakeCommunicator make) {
  auto comm = std::make_unique<polyrailComm>();
  comm->options = wishes.options;
  if (!wishes.is_blocking) {
    comm->creator =
        std::thread([creation = comm->creation, make = std::move(make)] { creation->run(make); });
    *handle = comm.release();
    return {StatusCode::kInProgress, "the communicator is being made"};
  }
  if (OpenGroup* group = OpenGroup::find()) {
    // A std::function wants to be copied, so the half-made handle is shared until then.
    const auto waiting = std::make_shared<std::unique_ptr<polyrailComm>>(std::move(comm));
    group->add_blocking(handle, [handle, waiting, make = std::move(make)] {
      return finish(handle, std::move(*waiting), make);
    });
    return ok();
  }
  return finish(handle, std::move(comm), make);
}

// Refuses a call that makes a communicator, and with it the open group.
polyrailResult_t made(polyrailResult_t result) {
  OpenGroup* group = OpenGroup::find();
  if (group != nullptr && result != polyrailSuccess && result != polyrailInProgress) {
    group->refuse({static_cast<StatusCode>(result), last_error()});
  }
  return result;
}

void end(polyrailComm* comm) {
  if (comm->creator.joinable()) comm->creator.join();
  const std::shared_ptr<Family> family = comm->family;
  if (family == nullptr) {
    delete comm;
  } else {
    family->leave([comm] { delete comm; });
  }
}

polyrailResult_t split(const char* function, polyrailComm_t comm, int color, int key,
                       polyrailComm_t* newcomm, const polyrailConfig_t* config) {
  return made(with(comm, function, [&](Communicator& parent) -> Status {
    if (newcomm == nullptr) return invalid(function, "newcomm is null");
    *newcomm = nullptr;
    const Result<Wishes> wishes = read_config(function, config, comm->options);
    if (!wishes.is_ok()) return wishes.status();
    if (!wishes.value().is_blocking) return invalid(function, "blocking must be 1 here");
    const auto body = [comm, newcomm, color, key, &parent, options = wishes.value().options] {
      const InCall in_call(*comm);
      Result<std::unique_ptr<Communicator>> part = parent.split(color, key, options);
      if (!part.is_ok()) return part.status();
      if (part.value() == nullptr) return ok();
      auto made_comm = std::make_unique<polyrailComm>();
      made_comm->options = options;
      made_comm->family = comm->family;
      return finish(newcomm, std::move(made_comm), [&] { return std::move(part); });
    };
    if (OpenGroup* group = OpenGroup::find()) {
      group->add_blocking(comm, body);
      return ok();
    }
    return body();
  }));
}

}  // namespace

extern "C" {

polyrailResult_t polyrailCommInitRankConfig(polyrailComm_t* comm, int nranks, polyrailUniqueId id,
                                            int rank, const polyrailConfig_t* config) {
  return made(guard(nullptr, __func__, [&]() -> Status {
    constexpr const char* kName = "polyrailCommInitRank";
    if (comm == nullptr) return invalid(kName, "comm is null");
    *comm = nullptr;
    if (nranks < 1) return invalid(kName, "nranks is " + std::to_string(nranks));
    if (rank < 0 || rank >= nranks) {
      return invalid(
          kName, "rank " + std::to_string(rank) + " is not below nranks " + std::to_string(nranks));
    }
    const Result<Wishes> wishes = read_config(kName, config);
    if (!wishes.is_ok()) return wishes.status();
    const Result<UniqueId> value = UniqueId::from_bytes(
        reinterpret_cast<const std::uint8_t*>(id.internal), sizeof id.internal);
    if (!value.is_ok()) return value.status();
    return start_making(comm, wishes.value(),
                        [=, unique_id = value.value(), options = wishes.value().options] {
                          return create(join(unique_id, rank, nranks, options), options);
                        });
  }));
}

polyrailResult_t polyrailCommInitRank(polyrailComm_t* comm, int nranks, polyrailUniqueId id,
                                      int rank) {
  return polyrailCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

polyrailResult_t polyrailCommInitEnv(polyrailComm_t* comm, const polyrailConfig_t* config) {
  return made(guard(nullptr, __func__, [&]() -> Status {
    if (comm == nullptr) return invalid("polyrailCommInitEnv", "comm is null");
    *comm = nullptr;
    const Result<Wishes> wishes = read_config("polyrailCommInitEnv", config);
    if (!wishes.is_ok()) return wishes.status();
    return start_making(comm, wishes.value(), [options = wishes.value().options] {
      return create(join_from_environment(options), options);
    });
  }));
}

polyrailResult_t polyrailCommInitAll(polyrailComm_t* comms, int nranks, const int* devlist) {
  (void)devlist;
  return guard(nullptr, __func__, [&]() -> Status {
    constexpr const char* kName = "polyrailCommInitAll";
    if (comms == nullptr) return invalid(kName, "comms is null");
    if (nranks < 1) return invalid(kName, "nranks is " + std::to_string(nranks));
    const auto count = static_cast<std::size_t>(nranks);
    std::fill_n(comms, count, nullptr);
    const Result<Wishes> wishes = read_config(kName, nullptr);
    if (!wishes.is_ok()) return wishes.status();
    const Options& options = wishes.value().options;
    Result<std::vector<std::unique_ptr<Bootstrap>>> bootstraps = join_in_process(nranks, options);
    if (!bootstraps.is_ok()) return bootstraps.status();
    const auto family = std::make_shared<Family>();  // shared by its members
    OpenGroup group;
    for (std::size_t rank = 0; rank < count; ++rank) {
      group.add_blocking(&comms[rank], [&, rank] {
        auto comm = std::make_unique<polyrailComm>();
        comm->options = options;
        comm->family = family;
        return finish(&comms[rank], std::move(comm), [&] {
          return Communicator::create(std::move(bootstraps.value()[rank]), options);
        });
      });
    }
    const Status status = group.end();
    if (status.is_ok()) return status;
    for (std::size_t rank = 0; rank < count; ++rank) {
      if (comms[rank] != nullptr) end(std::exchange(comms[rank], nullptr));
    }
    return status;
  });
}

polyrailResult_t polyrailCommSplit(polyrailComm_t comm, int color, int key, polyrailComm_t* newcomm,
                                   const polyrailConfig_t* config) {
  return split(__func__, comm, color, key, newcomm, config);
}

polyrailResult_t polyrailCommDup(polyrailComm_t comm, polyrailComm_t* newcomm) {
  return split(__func__, comm, 0, 0, newcomm, nullptr);
}

polyrailResult_t polyrailCommCount(polyrailComm_t comm, int* count) {
  return with(comm, __func__, [&](Communicator& communicator) -> Status {
    if (count == nullptr) return invalid("polyrailCommCount", "count is null");
    *count = communicator.rank_count();
    return ok();
  });
}

polyrailResult_t polyrailCommUserRank(polyrailComm_t comm, int* rank) {
  return with(comm, __func__, [&](Communicator& communicator) -> Status {
    if (rank == nullptr) return invalid("polyrailCommUserRank", "rank is null");
    *rank = communicator.rank();
    return ok();
  });
}

polyrailResult_t polyrailCommGetAsyncError(polyrailComm_t comm, polyrailResult_t* async_error) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (comm == nullptr || async_error == nullptr) {
      return invalid("polyrailCommGetAsyncError", "comm or async_error is null");
    }
    Status status = comm->creation->status();
    if (status.is_ok()) status = comm->creation->communicator().async_error();
    *async_error = report(comm, status);
    return ok();
  });
}

polyrailResult_t polyrailCommFinalize(polyrailComm_t comm) {
  return with(comm, __func__,
              [](Communicator& communicator) { return communicator.async_error(); });
}

polyrailResult_t polyrailCommDestroy(polyrailComm_t comm) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (comm == nullptr) return invalid("polyrailCommDestroy", "comm is null");
    end(comm);
    return ok();
  });
}

polyrailResult_t polyrailCommAbort(polyrailComm_t comm) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (comm == nullptr) return invalid("polyrailCommAbort", "comm is null");
    comm->creation->abort();
    // The creation belongs to its thread then, which ends what it may still make.
    if (comm->creation->status().code() == StatusCode::kInProgress) comm->creator.detach();
    comm->creation->wait_for_calls();
    end(comm);
    return ok();
  });
}

}  // extern "C"
