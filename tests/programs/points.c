/* Goes once through the calls that change an account, for `instant.c` to kill it anywhere on the way. */
#include "driver.h"

int main(void)
{
    CUcontext context;
    CUdeviceptr block = 0, small = 0, later = 0, pooled = 0;
    CUmemoryPool pool;
    CUmemHandle handle;
    size_t free_bytes, total;
    CUmemPoolProps in_pool = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUmemAllocationProp physical = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

    __asm__ volatile("int3");
    int error = cuInit(0);
    __asm__ volatile("int3");
    if (!error) error = cuDevicePrimaryCtxRetain(&context, 0);
    if (!error) error = cuCtxSetCurrent(context);
    if (!error) error = cuMemAlloc_v2(&block, 64 << 20);
    if (!error) error = cuMemAlloc_v2(&small, 1000);
    if (!error) error = cuMemAlloc_v2(&later, 1ull << 40) != CUDA_ERROR_OUT_OF_MEMORY; /* a refusal, with its event */
    if (!error) error = cuMemGetInfo_v2(&free_bytes, &total);
    if (!error) error = cuMemFree_v2(small);
    if (!error) error = cuMemFree_v2(block);
    if (!error) error = cuMemAllocAsync(&later, 8 << 20, NULL);
    if (!error) error = cuMemFreeAsync(later, NULL);
    if (!error) error = cuMemPoolCreate(&pool, &in_pool);
    if (!error) error = cuMemAllocFromPoolAsync(&pooled, 8 << 20, pool, NULL);
    if (!error) error = cuMemFree_v2(pooled);
    if (!error) error = cuMemPoolDestroy(pool);
    if (!error) error = cuMemCreate(&handle, 2 << 20, &physical, 0);
    if (!error) error = cuMemRelease(handle);
    if (!error) error = cuMemAllocManaged(&block, 4 << 20, CU_MEM_ATTACH_GLOBAL);
    if (!error) error = cuMemFree_v2(block);
    if (!error) error = cuDevicePrimaryCtxRelease_v2(0);
    return error;
}
