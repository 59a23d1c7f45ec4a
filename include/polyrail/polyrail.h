/* The C API: NCCL's names and argument order with `polyrail` for `nccl`. Compiles as C11.
 *
 * Buffers are host memory. A NULL stream means that the call returns when it is done. Errors: the
 * result code, and polyrailGetLastError(comm) for the sentence that says what was seen. */
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

typedef enum {
  polyrailInt32 = 2,
  polyrailInt = 2,
  polyrailInt64 = 4,
  polyrailFloat16 = 6,
  polyrailHalf = 6,
  polyrailFloat32 = 7,
  polyrailFloat = 7,
  polyrailFloat64 = 8,
  polyrailDouble = 8,
  polyrailBfloat16 = 9
} polyrailDataType_t;

typedef enum {
  polyrailSum = 0,
  polyrailProd = 1,
  polyrailMax = 2,
  polyrailMin = 3,
  polyrailAvg = 4
} polyrailRedOp_t;

/* Options of one communicator: lines "name=value" (see polyrail-info --options) on top of the
 * environment. Make it with POLYRAIL_CONFIG_INITIALIZER. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  const char* options; /* NULL or "name=value\nname=value" */
} polyrailConfig_t;
#define POLYRAIL_CONFIG_INITIALIZER \
  { sizeof(polyrailConfig_t), 0x706f6c79u, POLYRAIL_VERSION_CODE, NULL }

polyrailResult_t polyrailGetVersion(int* version);
/* A new id: rank 0 will listen at its addresses. Hand it to all ranks by any safe way. */
polyrailResult_t polyrailGetUniqueId(polyrailUniqueId* id);
/* Text form of an id and back; `text` holds at least POLYRAIL_UNIQUE_ID_TEXT_BYTES. */
#define POLYRAIL_UNIQUE_ID_TEXT_BYTES 640
polyrailResult_t polyrailUniqueIdToText(const polyrailUniqueId* id, char* text, size_t bytes);
polyrailResult_t polyrailUniqueIdFromText(const char* text, polyrailUniqueId* id);

/* Collective over all ranks: blocks until every rank has joined and the rails are measured. */
polyrailResult_t polyrailCommInitRank(polyrailComm_t* comm, int nranks, polyrailUniqueId id,
                                      int rank);
polyrailResult_t polyrailCommInitRankConfig(polyrailComm_t* comm, int nranks, polyrailUniqueId id,
                                            int rank, const polyrailConfig_t* config);
/* From torchrun's environment: RANK WORLD_SIZE MASTER_ADDR MASTER_PORT, key in POLYRAIL_KEY. */
polyrailResult_t polyrailCommInitEnv(polyrailComm_t* comm, const polyrailConfig_t* config);

/* recvbuff = op over all ranks' sendbuff; count elements. In place if sendbuff == recvbuff. */
polyrailResult_t polyrailAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                   polyrailDataType_t datatype, polyrailRedOp_t op,
                                   polyrailComm_t comm, polyrailStream_t stream);

/* A host stream: operations given to it run in order, behind the caller's back. */
polyrailResult_t polyrailStreamCreate(polyrailStream_t* stream);
/* Blocks until everything given to the stream is done; the first failure among it. */
polyrailResult_t polyrailStreamSynchronize(polyrailStream_t stream);
/* polyrailSuccess or polyrailInProgress, or the first failure. */
polyrailResult_t polyrailStreamQuery(polyrailStream_t stream);
polyrailResult_t polyrailStreamDestroy(polyrailStream_t stream);

polyrailResult_t polyrailCommCount(polyrailComm_t comm, int* count);
polyrailResult_t polyrailCommUserRank(polyrailComm_t comm, int* rank);
polyrailResult_t polyrailCommGetAsyncError(polyrailComm_t comm, polyrailResult_t* async_error);
polyrailResult_t polyrailCommFinalize(polyrailComm_t comm);
polyrailResult_t polyrailCommDestroy(polyrailComm_t comm);
/* Ends without waiting for anybody. */
polyrailResult_t polyrailCommAbort(polyrailComm_t comm);

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
