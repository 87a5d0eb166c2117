/* CUDA driver and NVRTC: the few prototypes used, declared here so that no CUDA header is needed. */
#ifndef RL_CUDA_DRIVER_H
#define RL_CUDA_DRIVER_H
#include <stddef.h>
#include <stdint.h>
typedef int cu_result, cu_device;
typedef uint64_t cu_ptr;
typedef struct cu_ctx_st *cu_ctx;
typedef struct cu_mod_st *cu_mod;
typedef struct cu_fn_st *cu_fn;
typedef struct cu_stream_st *cu_stream;
typedef struct cu_event_st *cu_event;
typedef struct cu_graph_st *cu_graph;
typedef struct cu_exec_st *cu_exec;
typedef struct nvrtc_st *nvrtc_prog;
/* CU_FN(name in the table, symbol, arguments) */
#define CU_FUNCTIONS \
  CU_FN(init, "cuInit", (unsigned)) \
  CU_FN(driver_version, "cuDriverGetVersion", (int *)) \
  CU_FN(error_string, "cuGetErrorString", (cu_result, const char **)) \
  CU_FN(device_count, "cuDeviceGetCount", (int *)) \
  CU_FN(device_get, "cuDeviceGet", (cu_device *, int)) \
  CU_FN(device_name, "cuDeviceGetName", (char *, int, cu_device)) \
  CU_FN(device_attr, "cuDeviceGetAttribute", (int *, int, cu_device)) \
  CU_FN(device_mem, "cuDeviceTotalMem_v2", (size_t *, cu_device)) \
  CU_FN(ctx_retain, "cuDevicePrimaryCtxRetain", (cu_ctx *, cu_device)) \
  CU_FN(ctx_set, "cuCtxSetCurrent", (cu_ctx)) \
  CU_FN(ctx_sync, "cuCtxSynchronize", (void)) \
  CU_FN(mem_info, "cuMemGetInfo_v2", (size_t *, size_t *)) \
  CU_FN(mem_alloc, "cuMemAlloc_v2", (cu_ptr *, size_t)) \
  CU_FN(mem_free, "cuMemFree_v2", (cu_ptr)) \
  CU_FN(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned)) \
  CU_FN(host_free, "cuMemFreeHost", (void *)) \
  CU_FN(htod, "cuMemcpyHtoDAsync_v2", (cu_ptr, const void *, size_t, cu_stream)) \
  CU_FN(dtoh, "cuMemcpyDtoHAsync_v2", (void *, cu_ptr, size_t, cu_stream)) \
  CU_FN(dtod, "cuMemcpyDtoDAsync_v2", (cu_ptr, cu_ptr, size_t, cu_stream)) \
  CU_FN(memset8, "cuMemsetD8Async", (cu_ptr, unsigned char, size_t, cu_stream)) \
  CU_FN(peer, "cuMemcpyPeerAsync", (cu_ptr, cu_ctx, cu_ptr, cu_ctx, size_t, cu_stream)) \
  CU_FN(stream_create, "cuStreamCreate", (cu_stream *, unsigned)) \
  CU_FN(stream_sync, "cuStreamSynchronize", (cu_stream)) \
  CU_FN(stream_wait, "cuStreamWaitEvent", (cu_stream, cu_event, unsigned)) \
  CU_FN(event_create, "cuEventCreate", (cu_event *, unsigned)) \
  CU_FN(event_destroy, "cuEventDestroy_v2", (cu_event)) \
  CU_FN(event_record, "cuEventRecord", (cu_event, cu_stream)) \
  CU_FN(event_record_flags, "cuEventRecordWithFlags", (cu_event, cu_stream, unsigned)) \
  CU_FN(event_sync, "cuEventSynchronize", (cu_event)) \
  CU_FN(event_query, "cuEventQuery", (cu_event)) \
  CU_FN(event_elapsed, "cuEventElapsedTime", (float *, cu_event, cu_event)) \
  CU_FN(capture_begin, "cuStreamBeginCapture_v2", (cu_stream, int)) \
  CU_FN(capture_end, "cuStreamEndCapture", (cu_stream, cu_graph *)) \
  CU_FN(graph_make, "cuGraphInstantiateWithFlags", (cu_exec *, cu_graph, unsigned long long)) \
  CU_FN(graph_launch, "cuGraphLaunch", (cu_exec, cu_stream)) \
  CU_FN(graph_free, "cuGraphDestroy", (cu_graph)) \
  CU_FN(exec_free, "cuGraphExecDestroy", (cu_exec)) \
  CU_FN(mod_load, "cuModuleLoadData", (cu_mod *, const void *)) \
  CU_FN(mod_fn, "cuModuleGetFunction", (cu_fn *, cu_mod, const char *)) \
  CU_FN(launch, "cuLaunchKernel", (cu_fn, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_stream, void **, void **))
#define NVRTC_FUNCTIONS \
  CU_FN(version, "nvrtcVersion", (int *, int *)) \
  CU_FN(create, "nvrtcCreateProgram", (nvrtc_prog *, const char *, const char *, int, const char *const *, const char *const *)) \
  CU_FN(compile, "nvrtcCompileProgram", (nvrtc_prog, int, const char *const *)) \
  CU_FN(log_size, "nvrtcGetProgramLogSize", (nvrtc_prog, size_t *)) \
  CU_FN(log, "nvrtcGetProgramLog", (nvrtc_prog, char *)) \
  CU_FN(cubin_size, "nvrtcGetCUBINSize", (nvrtc_prog, size_t *)) \
  CU_FN(cubin, "nvrtcGetCUBIN", (nvrtc_prog, char *)) \
  CU_FN(destroy, "nvrtcDestroyProgram", (nvrtc_prog *))
#define CU_FN(name, sym, args) cu_result(*name) args;
typedef struct cu_api {
  CU_FUNCTIONS
} cu_api;
typedef struct nvrtc_api {
  NVRTC_FUNCTIONS
} nvrtc_api;
#undef CU_FN
#endif
