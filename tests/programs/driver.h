/* The part of the driver API that these programs call. Written out here so that no CUDA installation is needed; the
 * header oracle (tests/oracle) checks the same prototypes against NVIDIA's headers. */
#pragma once
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUmemHandle;

enum { CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_INITIALIZED = 3 };
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum { CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_LOCATION_TYPE_HOST = 2, CU_MEM_LOCATION_TYPE_HOST_NUMA = 3 };
enum { CU_MEM_ATTACH_GLOBAL = 1 };
enum { CU_AD_FORMAT_FLOAT = 0x20 };

typedef struct { int type, id; } CUmemLocation;
typedef struct {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct { unsigned char compressionType, gpuDirectRDMACapable; unsigned short usage; unsigned char reserved[4]; } allocFlags;
} CUmemAllocationProp;
typedef struct { CUmemLocation location; int flags; } CUmemAccessDesc;
typedef struct { size_t Width, Height, Depth; unsigned Format, NumChannels, Flags; } CUDA_ARRAY3D_DESCRIPTOR;
typedef struct {
    int allocType, handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct { char reserved[64]; } CUmemPoolPtrExportData;
typedef struct { char reserved[64]; } CUipcMemHandle;
typedef struct {
    CUmemPoolProps poolProps;
    const CUmemAccessDesc *accessDescs;
    size_t accessDescCount, bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

/* name, arguments: the functions the programs use, once for prototypes and once for looking them up */
#define FUNCTIONS(F) \
    F(cuInit, (unsigned flags)) \
    F(cuDriverGetVersion, (int *version)) \
    F(cuDeviceGet, (CUdevice *device, int ordinal)) \
    F(cuDeviceGetCount, (int *count)) \
    F(cuDeviceGetUuid, (unsigned char *uuid, CUdevice device)) \
    F(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device)) \
    F(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device)) \
    F(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) \
    F(cuCtxSetCurrent, (CUcontext context)) \
    F(cuCtxSynchronize, (void)) \
    F(cuMemGetInfo_v2, (size_t *free, size_t *total)) \
    F(cuMemAlloc_v2, (CUdeviceptr *pointer, size_t bytes)) \
    F(cuMemAllocPitch_v2, (CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element)) \
    F(cuMemAllocManaged, (CUdeviceptr *pointer, size_t bytes, unsigned flags)) \
    F(cuMemFree_v2, (CUdeviceptr pointer)) \
    F(cuMemAllocAsync, (CUdeviceptr *pointer, size_t bytes, CUstream stream)) \
    F(cuMemAllocAsync_ptsz, (CUdeviceptr *pointer, size_t bytes, CUstream stream)) \
    F(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream)) \
    F(cuMemPoolCreate, (CUmemoryPool *pool, const CUmemPoolProps *properties)) \
    F(cuMemPoolDestroy, (CUmemoryPool pool)) \
    F(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep)) \
    F(cuDeviceGetDefaultMemPool, (CUmemoryPool *pool, CUdevice device)) \
    F(cuMemAllocFromPoolAsync, (CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)) \
    F(cuMemAddressReserve, (CUdeviceptr *pointer, size_t bytes, size_t alignment, CUdeviceptr at, unsigned long long flags)) \
    F(cuMemAddressFree, (CUdeviceptr pointer, size_t bytes)) \
    F(cuMemCreate, (CUmemHandle *handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags)) \
    F(cuMemRelease, (CUmemHandle handle)) \
    F(cuMemMap, (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemHandle handle, unsigned long long flags)) \
    F(cuMemUnmap, (CUdeviceptr pointer, size_t bytes)) \
    F(cuMemSetAccess, (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count)) \
    F(cuArray3DCreate_v2, (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)) \
    F(cuArrayDestroy, (CUarray array)) \
    F(cuStreamCreate, (CUstream *stream, unsigned flags)) \
    F(cuStreamSynchronize, (CUstream stream)) \
    F(cuMemsetD8_v2, (CUdeviceptr pointer, unsigned char value, size_t bytes)) \
    F(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes)) \
    F(cuMemExportToShareableHandle, (void *shared, CUmemHandle handle, int type, unsigned long long flags)) \
    F(cuMemImportFromShareableHandle, (CUmemHandle *handle, void *shared, int type)) \
    F(cuMemPoolExportToShareableHandle, (void *shared, CUmemoryPool pool, int type, unsigned long long flags)) \
    F(cuMemPoolImportFromShareableHandle, (CUmemoryPool *pool, void *shared, int type, unsigned long long flags)) \
    F(cuMemPoolExportPointer, (CUmemPoolPtrExportData *data, CUdeviceptr pointer)) \
    F(cuMemPoolImportPointer, (CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data)) \
    F(cuIpcGetMemHandle, (CUipcMemHandle *handle, CUdeviceptr pointer)) \
    F(cuIpcOpenMemHandle_v2, (CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)) \
    F(cuIpcCloseMemHandle, (CUdeviceptr pointer)) \
    F(cuStreamBeginCapture_v2, (CUstream stream, int mode)) \
    F(cuStreamEndCapture, (CUstream stream, CUgraph *graph)) \
    F(cuGraphCreate, (CUgraph *graph, unsigned flags)) \
    F(cuGraphAddMemAllocNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)) \
    F(cuGraphInstantiateWithFlags, (CUgraphExec *exec, CUgraph graph, unsigned long long flags)) \
    F(cuGraphLaunch, (CUgraphExec exec, CUstream stream)) \
    F(cuGraphExecDestroy, (CUgraphExec exec)) \
    F(cuGraphDestroy, (CUgraph graph)) \
    F(cuDeviceGraphMemTrim, (CUdevice device)) \
    F(cuModuleLoadData, (CUmodule *module, const void *image)) \
    F(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name)) \
    F(cuLaunchKernel, (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
                       unsigned shared, CUstream stream, void **parameters, void **extra)) \
    F(cuGetProcAddress, (const char *name, void **function, int version, unsigned long long flags)) \
    F(cuGetProcAddress_v2, (const char *name, void **function, int version, unsigned long long flags, int *status))

#define PROTOTYPE(name, arguments) CUresult name arguments;
FUNCTIONS(PROTOTYPE)
