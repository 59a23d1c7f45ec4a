/* The C API: NCCL's names and argument order with `polyrail` for `nccl`. Compiles as C11.
 *
 * Buffers are host memory. A NULL stream means that the call returns when it is done. Errors: the
 * result code, and polyrailGetLastError(comm) for the sentence that says what was seen. Calls on
 * one communicator must not overlap unless it says so; several are independent of each other. */
#ifndef POLYRAIL_POLYRAIL_H_
#define POLYRAIL_POLYRAIL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POLYRAIL_MAJOR 0
#define POLYRAIL_MINOR 1
#define POLYRAIL_PATCH 0
#define POLYRAIL_VERSION_CODE (POLYRAIL_MAJOR * 10000 + POLYRAIL_MINOR * 100 + POLYRAIL_PATCH)

typedef struct polyrailComm* polyrailComm_t;
typedef struct polyrailStream* polyrailStream_t;
typedef struct polyrailEvent* polyrailEvent_t;

#define POLYRAIL_UNIQUE_ID_BYTES 256
typedef struct {
  char internal[POLYRAIL_UNIQUE_ID_BYTES];
} polyrailUniqueId;

typedef enum {
  polyrailSuccess = 0,
  polyrailUnhandledCudaError = 1,
  polyrailSystemError = 2,
  polyrailInternalError = 3,
  polyrailInvalidArgument = 4,
  polyrailInvalidUsage = 5,
  polyrailRemoteError = 6,
  polyrailInProgress = 7,
  polyrailTimeout = 8,
  polyrailAborted = 9
} polyrailResult_t;

/* Values below 32 equal NCCL's. */
typedef enum {
  polyrailInt8 = 0,
  polyrailChar = 0,
  polyrailUint8 = 1,
  polyrailInt32 = 2,
  polyrailInt = 2,
  polyrailUint32 = 3,
  polyrailInt64 = 4,
  polyrailUint64 = 5,
  polyrailFloat16 = 6,
  polyrailHalf = 6,
  polyrailFloat32 = 7,
  polyrailFloat = 7,
  polyrailFloat64 = 8,
  polyrailDouble = 8,
  polyrailBfloat16 = 9,
  polyrailFloat8e4m3 = 10,
  polyrailFloat8e5m2 = 11,
  polyrailInt16 = 32,
  polyrailUint16 = 33,
  polyrailBool = 34,               /* one byte: 0 or 1 */
  polyrailComplex64 = 35,          /* two floats: real, imaginary */
  polyrailComplex128 = 36,         /* two doubles */
  polyrailInt4x2 = 37,             /* two 4-bit integers in a byte: moved, not reduced */
  polyrailFloat32Index = 40,       /* {float value; int32_t index}: for polyrailMaxLoc and MinLoc */
  polyrailFloat64Index = 41,       /* {double value; int64_t index} */
  polyrailInt32Index = 42,         /* {int32_t value; int32_t index} */
  polyrailInt64Index = 43,         /* {int64_t value; int64_t index} */
  polyrailMaxDataType = 0x7fffffff /* none: makes room for numbers that are checked */
} polyrailDataType_t;

/* Those made by polyrailRedOpCreate... have numbers from 1000 up. */
typedef enum {
  polyrailSum = 0,
  polyrailProd = 1,
  polyrailMax = 2,
  polyrailMin = 3,
  polyrailAvg = 4, /* the sum divided by the number of ranks, towards zero for integers */
  polyrailBitAnd = 5,
  polyrailBitOr = 6,
  polyrailBitXor = 7,
  polyrailLogicalAnd = 8, /* of elements not equal to zero; 0 or 1 */
  polyrailLogicalOr = 9,
  polyrailLogicalXor = 10,
  polyrailMaxLoc = 11, /* of pairs: the larger value; of equal ones that with the smaller index */
  polyrailMinLoc = 12,
  polyrailMaxRedOp = 0x7fffffff /* none */
} polyrailRedOp_t;

/* How one communicator is made. Make it with POLYRAIL_CONFIG_INITIALIZER. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  /* NULL or "name=value\nname=value" on top of the environment; see polyrail-info --options. */
  const char* options;
  int blocking; /* 0: the call that makes it returns at once with polyrailInProgress */
} polyrailConfig_t;
#define POLYRAIL_CONFIG_INITIALIZER \
  { sizeof(polyrailConfig_t), 0x706f6c79u, POLYRAIL_VERSION_CODE, NULL, 1 }

polyrailResult_t polyrailGetVersion(int* version);
/* A new id: rank 0 will listen at its addresses. Hand it to all ranks by any safe way. */
polyrailResult_t polyrailGetUniqueId(polyrailUniqueId* id);
/* Text form of an id and back; `text` holds at least POLYRAIL_UNIQUE_ID_TEXT_BYTES. */
#define POLYRAIL_UNIQUE_ID_TEXT_BYTES 640
polyrailResult_t polyrailUniqueIdToText(const polyrailUniqueId* id, char* text, size_t bytes);
polyrailResult_t polyrailUniqueIdFromText(const char* text, polyrailUniqueId* id);

/* --- Communicators
 *
 * Collective over all ranks: blocks until every rank has joined and the rails are measured. In an
 * open group it is done by polyrailGroupEnd, which writes *comm.
 *
 * With blocking = 0 in the config: polyrailInProgress and a handle at once. Until
 * polyrailCommGetAsyncError says something else than polyrailInProgress, all other calls on it are
 * polyrailInvalidUsage; polyrailCommDestroy waits until it is made, polyrailCommAbort does not. */
polyrailResult_t polyrailCommInitRank(polyrailComm_t* comm, int nranks, polyrailUniqueId id,
                                      int rank);
polyrailResult_t polyrailCommInitRankConfig(polyrailComm_t* comm, int nranks, polyrailUniqueId id,
                                            int rank, const polyrailConfig_t* config);
/* From torchrun's environment: RANK WORLD_SIZE MASTER_ADDR MASTER_PORT, key in POLYRAIL_KEY. */
polyrailResult_t polyrailCommInitEnv(polyrailComm_t* comm, const polyrailConfig_t* config);
/* All ranks in this process: comms[rank] for each of nranks. devlist is ignored. One thread may
 * drive them all, with groups or streams. */
polyrailResult_t polyrailCommInitAll(polyrailComm_t* comms, int nranks, const int* devlist);
/* Collective over comm: a new communicator of the ranks with the same color (0 or more), numbered
 * by key, then by their ranks in comm; with POLYRAIL_SPLIT_NOCOLOR *newcomm is NULL. config: its
 * options on top of comm's; NULL: comm's. blocking must be 1. In an open group it is done by
 * polyrailGroupEnd. */
#define POLYRAIL_SPLIT_NOCOLOR -1
polyrailResult_t polyrailCommSplit(polyrailComm_t comm, int color, int key, polyrailComm_t* newcomm,
                                   const polyrailConfig_t* config);
/* The same ranks and options once more. */
polyrailResult_t polyrailCommDup(polyrailComm_t comm, polyrailComm_t* newcomm);
polyrailResult_t polyrailCommCount(polyrailComm_t comm, int* count);
polyrailResult_t polyrailCommUserRank(polyrailComm_t comm, int* rank);
/* The first failure of comm, or polyrailInProgress while it is being made. */
polyrailResult_t polyrailCommGetAsyncError(polyrailComm_t comm, polyrailResult_t* async_error);
polyrailResult_t polyrailCommFinalize(polyrailComm_t comm);
/* Waits for operations under way, and until peers have taken what was sent. Of the ranks of one
 * polyrailCommInitAll, all but the last end in the background: synchronize their streams before. */
polyrailResult_t polyrailCommDestroy(polyrailComm_t comm);
/* Operations under way fail on all ranks, without waiting for anybody; then as Destroy. Any thread,
 * even while others are inside of calls on comm. */
polyrailResult_t polyrailCommAbort(polyrailComm_t comm);

/* --- Operators, for one communicator. They may be destroyed while operations use them. */
typedef enum {
  polyrailScalarDevice = 0, /* not on host memory: refused */
  polyrailScalarHostImmediate = 1
} polyrailScalarResidence_t;
/* The sum of each rank's input times its own factor, for one data type; *scalar is read now. */
polyrailResult_t polyrailRedOpCreatePreMulSum(polyrailRedOp_t* op, void* scalar,
                                              polyrailDataType_t datatype,
                                              polyrailScalarResidence_t residence,
                                              polyrailComm_t comm);
/* sum(weight_i * input_i) / sum(weight_i), of floating-point elements. */
polyrailResult_t polyrailRedOpCreateWeightedAvg(polyrailRedOp_t* op, double weight,
                                                polyrailComm_t comm);
/* out[i] = a[i] op b[i] for count elements; out may be a or b. Called by any thread; must not call
 * Polyrail. */
typedef void (*polyrailRedOpFunction_t)(const void* a, const void* b, void* out, size_t count,
                                        polyrailDataType_t datatype, void* context);
/* An associative operator of your own. is_commutative 0: operands are taken in rank order.
 * identity: NULL or one element e with e op x = x. context and identity are borrowed until the last
 * operation is done. */
polyrailResult_t polyrailRedOpCreateUser(polyrailRedOp_t* op, polyrailRedOpFunction_t combine,
                                         void* context, int is_commutative, const void* identity,
                                         polyrailComm_t comm);
polyrailResult_t polyrailRedOpDestroy(polyrailRedOp_t op, polyrailComm_t comm);

/* --- Collectives. n is the number of ranks; counts are of elements; root is a rank.
 *
 * All ranks make the same calls on a communicator in the same order. Buffers that a rank does not
 * use may be NULL. In place means what it does in NCCL. Parts follow one another by rank. */

/* recvbuff = op over all ranks' sendbuff. In place if sendbuff == recvbuff. */
polyrailResult_t polyrailAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                   polyrailDataType_t datatype, polyrailRedOp_t op,
                                   polyrailComm_t comm, polyrailStream_t stream);
/* The same of polyrailFloat32; what travels is rounded to the narrower wiretype. */
polyrailResult_t polyrailAllReduceWire(const void* sendbuff, void* recvbuff, size_t count,
                                       polyrailDataType_t datatype, polyrailDataType_t wiretype,
                                       polyrailRedOp_t op, polyrailComm_t comm,
                                       polyrailStream_t stream);
/* The same at root only. */
polyrailResult_t polyrailReduce(const void* sendbuff, void* recvbuff, size_t count,
                                polyrailDataType_t datatype, polyrailRedOp_t op, int root,
                                polyrailComm_t comm, polyrailStream_t stream);
/* recvbuff = root's sendbuff. */
polyrailResult_t polyrailBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                   polyrailDataType_t datatype, int root, polyrailComm_t comm,
                                   polyrailStream_t stream);
polyrailResult_t polyrailBcast(void* buff, size_t count, polyrailDataType_t datatype, int root,
                               polyrailComm_t comm, polyrailStream_t stream);
/* sendbuff: n parts of recvcount; recvbuff: this rank's part of the reduction. */
polyrailResult_t polyrailReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                       polyrailDataType_t datatype, polyrailRedOp_t op,
                                       polyrailComm_t comm, polyrailStream_t stream);
/* recvbuff: n parts of sendcount, by rank. */
polyrailResult_t polyrailAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                   polyrailDataType_t datatype, polyrailComm_t comm,
                                   polyrailStream_t stream);
/* Both: n parts of count, one for each rank and one from each. */
polyrailResult_t polyrailAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                  polyrailDataType_t datatype, polyrailComm_t comm,
                                  polyrailStream_t stream);
/* recvbuff at root: n parts of count. */
polyrailResult_t polyrailGather(const void* sendbuff, void* recvbuff, size_t count,
                                polyrailDataType_t datatype, int root, polyrailComm_t comm,
                                polyrailStream_t stream);
/* sendbuff at root: n parts of count. */
polyrailResult_t polyrailScatter(const void* sendbuff, void* recvbuff, size_t count,
                                 polyrailDataType_t datatype, int root, polyrailComm_t comm,
                                 polyrailStream_t stream);
/* recvbuff = op over the sendbuffs of the ranks up to this one, in rank order. */
polyrailResult_t polyrailScan(const void* sendbuff, void* recvbuff, size_t count,
                              polyrailDataType_t datatype, polyrailRedOp_t op, polyrailComm_t comm,
                              polyrailStream_t stream);
/* The same without this one. Rank 0 gets the identity of an operator of your own that has one; else
 * its recvbuff is left alone. */
polyrailResult_t polyrailExclusiveScan(const void* sendbuff, void* recvbuff, size_t count,
                                       polyrailDataType_t datatype, polyrailRedOp_t op,
                                       polyrailComm_t comm, polyrailStream_t stream);
/* Done when all ranks have entered it. */
polyrailResult_t polyrailBarrier(polyrailComm_t comm, polyrailStream_t stream);

/* Messages between two ranks: `count` and `datatype` are the same on both. In a group they may come
 * in any order. Those of one pair and tag are received in the order in which they were sent; the
 * forms without a tag have tag 0. */
polyrailResult_t polyrailSend(const void* sendbuff, size_t count, polyrailDataType_t datatype,
                              int peer, polyrailComm_t comm, polyrailStream_t stream);
polyrailResult_t polyrailRecv(void* recvbuff, size_t count, polyrailDataType_t datatype, int peer,
                              polyrailComm_t comm, polyrailStream_t stream);
polyrailResult_t polyrailSendTagged(const void* sendbuff, size_t count, polyrailDataType_t datatype,
                                    int peer, uint32_t tag, polyrailComm_t comm,
                                    polyrailStream_t stream);
polyrailResult_t polyrailRecvTagged(void* recvbuff, size_t count, polyrailDataType_t datatype,
                                    int peer, uint32_t tag, polyrailComm_t comm,
                                    polyrailStream_t stream);
/* Two ranks, both calling it: each gets what the other sends. Blocks; in a group it runs at the
 * end. */
polyrailResult_t polyrailExchange(const void* sendbuff, void* recvbuff, size_t count,
                                  polyrailDataType_t datatype, int peer, polyrailComm_t comm);
/* The same for an average. buff = (buff of the lower rank + buff of the higher) / 2, the
 * same bits on both. Floating-point types. */
polyrailResult_t polyrailPairwiseAverage(void* buff, size_t count, polyrailDataType_t datatype,
                                         int peer, polyrailComm_t comm);

/* Slots of memory on every rank that others write without its help; C++: polyrail/window.hpp. */
typedef struct polyrailWindow* polyrailWindow_t;
/* Collective; in a group it runs at the end. `slots` slots of `bytes` bytes on each rank, empty
 * with version 0. */
polyrailResult_t polyrailWindowCreate(polyrailWindow_t* window, size_t slots, size_t bytes,
                                      polyrailComm_t comm);
/* Writes a slot of a rank, with a version of at least 1; the newest version stays. Returns when
 * `data` may change. Any thread. */
polyrailResult_t polyrailWindowPut(polyrailWindow_t window, int peer, size_t slot, const void* data,
                                   uint64_t version);
/* Copies the own slot, never halves of two puts. Any thread. */
polyrailResult_t polyrailWindowRead(polyrailWindow_t window, size_t slot, void* data,
                                    uint64_t* version);
/* Slot and data become (slot + data) / 2, at the peer and here. Any thread. */
polyrailResult_t polyrailWindowAverage(polyrailWindow_t window, int peer, size_t slot, void* data,
                                       polyrailDataType_t datatype);
polyrailResult_t polyrailWindowDestroy(polyrailWindow_t window);

/* Parts of unlike sizes: arrays of n counts, the same on all ranks, copied by the call. */
polyrailResult_t polyrailAllGatherV(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                    polyrailDataType_t datatype, polyrailComm_t comm,
                                    polyrailStream_t stream);
polyrailResult_t polyrailReduceScatterV(const void* sendbuff, void* recvbuff,
                                        const size_t* recvcounts, polyrailDataType_t datatype,
                                        polyrailRedOp_t op, polyrailComm_t comm,
                                        polyrailStream_t stream);
/* sendcounts: to each rank; recvcounts: from each. */
polyrailResult_t polyrailAllToAllV(const void* sendbuff, const size_t* sendcounts, void* recvbuff,
                                   const size_t* recvcounts, polyrailDataType_t datatype,
                                   polyrailComm_t comm, polyrailStream_t stream);
/* The array is needed at root; elsewhere it may be NULL. */
polyrailResult_t polyrailGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                 const size_t* recvcounts, polyrailDataType_t datatype, int root,
                                 polyrailComm_t comm, polyrailStream_t stream);
polyrailResult_t polyrailScatterV(const void* sendbuff, const size_t* sendcounts, void* recvbuff,
                                  size_t recvcount, polyrailDataType_t datatype, int root,
                                  polyrailComm_t comm, polyrailStream_t stream);

/* --- Groups, of the calling thread; they nest.
 *
 * The calls between Start and End are recorded. The outermost End starts them all, on each
 * communicator in the order given, and waits for those without a stream: so one thread can make
 * the calls of several ranks. None may take what another one of the group gives. Small
 * all-reduces that are neighbours on their communicator become one operation. If a call was
 * refused, End starts nothing and returns that failure. */
polyrailResult_t polyrailGroupStart(void);
polyrailResult_t polyrailGroupEnd(void);

/* --- Host streams and events.
 *
 * Operations given to a stream run in order behind the caller's back, whatever communicators they
 * belong to; different streams run beside each other. All ranks give a stream the calls of their
 * communicators in the same order. After a failure what follows in the stream fails too. Any thread
 * may use them. Inside a group, events are recorded and awaited at once, before the group starts.
 */
polyrailResult_t polyrailStreamCreate(polyrailStream_t* stream);
/* Blocks until everything given to the stream is over; the first failure there ever was. */
polyrailResult_t polyrailStreamSynchronize(polyrailStream_t stream);
/* polyrailSuccess or polyrailInProgress, or the first failure. */
polyrailResult_t polyrailStreamQuery(polyrailStream_t stream);
/* What is given to the stream from now on begins after the event. */
polyrailResult_t polyrailStreamWaitEvent(polyrailStream_t stream, polyrailEvent_t event);
/* Synchronizes, then ends it. */
polyrailResult_t polyrailStreamDestroy(polyrailStream_t stream);
/* An event is what a stream had been given when it was recorded last; done before the first time.
 */
polyrailResult_t polyrailEventCreate(polyrailEvent_t* event);
polyrailResult_t polyrailEventRecord(polyrailEvent_t event, polyrailStream_t stream);
/* As for streams, of what was recorded. */
polyrailResult_t polyrailEventQuery(polyrailEvent_t event);
polyrailResult_t polyrailEventSynchronize(polyrailEvent_t event);
polyrailResult_t polyrailEventDestroy(polyrailEvent_t event);

/* One word for a code. */
const char* polyrailGetErrorString(polyrailResult_t result);
/* The sentence of the last failure on comm, or of this thread if comm is NULL; never NULL. */
const char* polyrailGetLastError(polyrailComm_t comm);

/* Memory that ranks of the same host reach without a copy. */
polyrailResult_t polyrailMemAlloc(void** ptr, size_t size);
polyrailResult_t polyrailMemFree(void* ptr);

#ifdef __cplusplus
}
#endif
#endif
