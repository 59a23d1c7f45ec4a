// The C API: collectives and operators. Each turns its arguments into a Call.
#include <cstdint>
#include <type_traits>

#include "src/capi/groups.hpp"

using namespace polyrail;
using namespace polyrail::capi;

namespace {

static_assert(sizeof(size_t) == sizeof(std::uint64_t));

// One count for each rank of the communicator, or none if there are none.
std::span<const std::uint64_t> to_counts(const polyrailComm& comm, const size_t* counts) {
  static_assert(std::is_same_v<size_t, std::uint64_t>);
  if (counts == nullptr) return {};
  return {counts, static_cast<std::size_t>(comm.creation->communicator().rank_count())};
}

Status check_counts(const char* function, const char* parameter, const size_t* counts) {
  return counts != nullptr ? ok() : invalid(function, std::string(parameter) + " is null");
}

// A call that moves elements.
template <typename Make>
polyrailResult_t start_moving(polyrailComm* comm, const char* function, polyrailDataType_t datatype,
                              polyrailStream* stream, Make&& make) {
  return start_on(comm, function, [&]() -> Status {
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    return submit(*comm, make(type.value()), stream);
  });
}

// A call that reduces them.
template <typename Make>
polyrailResult_t start_reducing(polyrailComm* comm, const char* function,
                                polyrailDataType_t datatype, polyrailRedOp_t op,
                                polyrailStream* stream, Make&& make) {
  return start_on(comm, function, [&]() -> Status {
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    const Result<Reduction> reduction = comm->operators.find(op, datatype);
    if (!reduction.is_ok()) return invalid(function, reduction.status().message());
    return submit(*comm, make(type.value(), reduction.value()), stream);
  });
}

}  // namespace

extern "C" {

polyrailResult_t polyrailAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                   polyrailDataType_t datatype, polyrailRedOp_t op,
                                   polyrailComm_t comm, polyrailStream_t stream) {
  return start_reducing(comm, __func__, datatype, op, stream,
                        [&](DataType type, const Reduction& how) {
                          return Call::all_reduce(sendbuff, recvbuff, count, type, how);
                        });
}

polyrailResult_t polyrailAllReduceWire(const void* sendbuff, void* recvbuff, size_t count,
                                       polyrailDataType_t datatype, polyrailDataType_t wiretype,
                                       polyrailRedOp_t op, polyrailComm_t comm,
                                       polyrailStream_t stream) {
  const char* function = __func__;
  return start_on(comm, function, [&]() -> Status {
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    const Result<DataType> wire = to_type(function, wiretype);
    if (!wire.is_ok()) return wire.status();
    const Result<Reduction> reduction = comm->operators.find(op, datatype);
    if (!reduction.is_ok()) return invalid(function, reduction.status().message());
    Call call = Call::all_reduce(sendbuff, recvbuff, count, type.value(), reduction.value());
    call.wire_type = wire.value();
    return submit(*comm, call, stream);
  });
}

polyrailResult_t polyrailReduce(const void* sendbuff, void* recvbuff, size_t count,
                                polyrailDataType_t datatype, polyrailRedOp_t op, int root,
                                polyrailComm_t comm, polyrailStream_t stream) {
  return start_reducing(comm, __func__, datatype, op, stream,
                        [&](DataType type, const Reduction& how) {
                          return Call::reduce(sendbuff, recvbuff, count, type, how, root);
                        });
}

polyrailResult_t polyrailBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                   polyrailDataType_t datatype, int root, polyrailComm_t comm,
                                   polyrailStream_t stream) {
  return start_moving(comm, __func__, datatype, stream, [&](DataType type) {
    return Call::broadcast(sendbuff, recvbuff, count, type, root);
  });
}

polyrailResult_t polyrailBcast(void* buff, size_t count, polyrailDataType_t datatype, int root,
                               polyrailComm_t comm, polyrailStream_t stream) {
  return start_moving(comm, __func__, datatype, stream, [&](DataType type) {
    return Call::broadcast(buff, buff, count, type, root);
  });
}

polyrailResult_t polyrailReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                       polyrailDataType_t datatype, polyrailRedOp_t op,
                                       polyrailComm_t comm, polyrailStream_t stream) {
  return start_reducing(comm, __func__, datatype, op, stream,
                        [&](DataType type, const Reduction& how) {
                          return Call::reduce_scatter(sendbuff, recvbuff, recvcount, type, how);
                        });
}

polyrailResult_t polyrailReduceScatterV(const void* sendbuff, void* recvbuff,
                                        const size_t* recvcounts, polyrailDataType_t datatype,
                                        polyrailRedOp_t op, polyrailComm_t comm,
                                        polyrailStream_t stream) {
  const char* function = __func__;
  return start_on(comm, function, [&]() -> Status {
    if (Status status = check_counts(function, "recvcounts", recvcounts); !status.is_ok()) {
      return status;
    }
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    const Result<Reduction> reduction = comm->operators.find(op, datatype);
    if (!reduction.is_ok()) return invalid(function, reduction.status().message());
    return submit(*comm,
                  Call::reduce_scatter_v(sendbuff, recvbuff, to_counts(*comm, recvcounts),
                                         type.value(), reduction.value()),
                  stream);
  });
}

polyrailResult_t polyrailAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                   polyrailDataType_t datatype, polyrailComm_t comm,
                                   polyrailStream_t stream) {
  return start_moving(comm, __func__, datatype, stream, [&](DataType type) {
    return Call::all_gather(sendbuff, recvbuff, sendcount, type);
  });
}

polyrailResult_t polyrailAllGatherV(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                    polyrailDataType_t datatype, polyrailComm_t comm,
                                    polyrailStream_t stream) {
  const char* function = __func__;
  return start_on(comm, function, [&]() -> Status {
    if (Status status = check_counts(function, "recvcounts", recvcounts); !status.is_ok()) {
      return status;
    }
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    return submit(
        *comm, Call::all_gather_v(sendbuff, recvbuff, to_counts(*comm, recvcounts), type.value()),
        stream);
  });
}

polyrailResult_t polyrailAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                  polyrailDataType_t datatype, polyrailComm_t comm,
                                  polyrailStream_t stream) {
  return start_moving(comm, __func__, datatype, stream, [&](DataType type) {
    return Call::all_to_all(sendbuff, recvbuff, count, type);
  });
}

polyrailResult_t polyrailAllToAllV(const void* sendbuff, const size_t* sendcounts, void* recvbuff,
                                   const size_t* recvcounts, polyrailDataType_t datatype,
                                   polyrailComm_t comm, polyrailStream_t stream) {
  const char* function = __func__;
  return start_on(comm, function, [&]() -> Status {
    Status status = check_counts(function, "sendcounts", sendcounts);
    if (status.is_ok()) status = check_counts(function, "recvcounts", recvcounts);
    if (!status.is_ok()) return status;
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    return submit(*comm,
                  Call::all_to_all_v(sendbuff, to_counts(*comm, sendcounts), recvbuff,
                                     to_counts(*comm, recvcounts), type.value()),
                  stream);
  });
}

polyrailResult_t polyrailGather(const void* sendbuff, void* recvbuff, size_t count,
                                polyrailDataType_t datatype, int root, polyrailComm_t comm,
                                polyrailStream_t stream) {
  return start_moving(comm, __func__, datatype, stream, [&](DataType type) {
    return Call::gather(sendbuff, recvbuff, count, type, root);
  });
}

polyrailResult_t polyrailGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                 const size_t* recvcounts, polyrailDataType_t datatype, int root,
                                 polyrailComm_t comm, polyrailStream_t stream) {
  const char* function = __func__;
  return start_on(comm, function, [&]() -> Status {
    const bool is_root = comm->creation->communicator().rank() == root;
    if (Status status = check_counts(function, "recvcounts", recvcounts);
        is_root && !status.is_ok()) {
      return status;
    }
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    return submit(*comm,
                  Call::gather_v(sendbuff, sendcount, recvbuff, to_counts(*comm, recvcounts),
                                 type.value(), root),
                  stream);
  });
}

polyrailResult_t polyrailScatter(const void* sendbuff, void* recvbuff, size_t count,
                                 polyrailDataType_t datatype, int root, polyrailComm_t comm,
                                 polyrailStream_t stream) {
  return start_moving(comm, __func__, datatype, stream, [&](DataType type) {
    return Call::scatter(sendbuff, recvbuff, count, type, root);
  });
}

polyrailResult_t polyrailScatterV(const void* sendbuff, const size_t* sendcounts, void* recvbuff,
                                  size_t recvcount, polyrailDataType_t datatype, int root,
                                  polyrailComm_t comm, polyrailStream_t stream) {
  const char* function = __func__;
  return start_on(comm, function, [&]() -> Status {
    const bool is_root = comm->creation->communicator().rank() == root;
    if (Status status = check_counts(function, "sendcounts", sendcounts);
        is_root && !status.is_ok()) {
      return status;
    }
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    return submit(*comm,
                  Call::scatter_v(sendbuff, to_counts(*comm, sendcounts), recvbuff, recvcount,
                                  type.value(), root),
                  stream);
  });
}

polyrailResult_t polyrailScan(const void* sendbuff, void* recvbuff, size_t count,
                              polyrailDataType_t datatype, polyrailRedOp_t op, polyrailComm_t comm,
                              polyrailStream_t stream) {
  return start_reducing(comm, __func__, datatype, op, stream,
                        [&](DataType type, const Reduction& how) {
                          return Call::scan(sendbuff, recvbuff, count, type, how);
                        });
}

polyrailResult_t polyrailExclusiveScan(const void* sendbuff, void* recvbuff, size_t count,
                                       polyrailDataType_t datatype, polyrailRedOp_t op,
                                       polyrailComm_t comm, polyrailStream_t stream) {
  return start_reducing(comm, __func__, datatype, op, stream,
                        [&](DataType type, const Reduction& how) {
                          return Call::exclusive_scan(sendbuff, recvbuff, count, type, how);
                        });
}

polyrailResult_t polyrailBarrier(polyrailComm_t comm, polyrailStream_t stream) {
  return start_on(comm, __func__, [&] { return submit(*comm, Call::barrier(), stream); });
}

polyrailResult_t polyrailRedOpCreatePreMulSum(polyrailRedOp_t* op, void* scalar,
                                              polyrailDataType_t datatype,
                                              polyrailScalarResidence_t residence,
                                              polyrailComm_t comm) {
  const char* function = __func__;
  return with(comm, function, [&](Communicator&) -> Status {
    if (op == nullptr || scalar == nullptr) return invalid(function, "op or scalar is null");
    if (residence != polyrailScalarHostImmediate) {
      return invalid(function, "only scalars of polyrailScalarHostImmediate are known");
    }
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    const Result<double> factor = read_scalar(scalar, type.value());
    if (!factor.is_ok()) return invalid(function, factor.status().message());
    *op = comm->operators.add(Reduction::pre_mul_sum(factor.value()), type.value());
    return ok();
  });
}

polyrailResult_t polyrailRedOpCreateWeightedAvg(polyrailRedOp_t* op, double weight,
                                                polyrailComm_t comm) {
  const char* function = __func__;
  return with(comm, function, [&](Communicator&) -> Status {
    if (op == nullptr) return invalid(function, "op is null");
    *op = comm->operators.add(Reduction::weighted_avg(weight), std::nullopt);
    return ok();
  });
}

polyrailResult_t polyrailRedOpCreateUser(polyrailRedOp_t* op, polyrailRedOpFunction_t combine,
                                         void* context, int is_commutative, const void* identity,
                                         polyrailComm_t comm) {
  const char* function = __func__;
  return with(comm, function, [&](Communicator&) -> Status {
    if (op == nullptr || combine == nullptr) return invalid(function, "op or combine is null");
    *op = comm->operators.add(combine, context, is_commutative != 0, identity);
    return ok();
  });
}

polyrailResult_t polyrailRedOpDestroy(polyrailRedOp_t op, polyrailComm_t comm) {
  const char* function = __func__;
  return with(comm, function, [&](Communicator&) -> Status {
    const Status status = comm->operators.remove(op);
    return status.is_ok() ? ok() : invalid(function, status.message());
  });
}

}  // extern "C"
