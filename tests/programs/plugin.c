/* Loaded with RTLD_DEEPBIND by host.c: creates device memory beyond the cap and memory on the host. */
#include "driver.h"
#include <dlfcn.h>

int plugin_allocate(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUresult (*create)(CUmemHandle *, size_t, const CUmemAllocationProp *, unsigned long long) = dlsym(handle, "cuMemCreate");
    CUresult (*release)(CUmemHandle) = dlsym(handle, "cuMemRelease");
    CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_HOST, 0 } };
    CUmemHandle block;
    for (int i = 0; i < 200; i++)
        if (!create(&block, 2 << 20, &properties, 0)) release(block);
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    int error = 0;
    for (int i = 0; !error && i < 64; i++) error = create(&block, 64 << 20, &properties, 0);
    return error;
}
