/* cuMemCreate in device, host and NUMA-node memory with whatever an uninitialised structure may hold in the fields that a
 * location does not use. Prints the error of each creation and what the device lost to it. */
#include "driver.h"

static size_t available(void)
{
    size_t free_bytes = 0, total = 0;
    cuMemGetInfo_v2(&free_bytes, &total);
    return free_bytes;
}

int main(void)
{
    CUcontext context;
    static const struct { const char *name; int type, id; } locations[] = {
        { "device", CU_MEM_LOCATION_TYPE_DEVICE, 0 },      { "host", CU_MEM_LOCATION_TYPE_HOST, 0x5a5a5a5a },
        { "numa", CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 },     { "nowhere", 0, 0 },
        { "unknown", 99, -1 },                             { "no-such-device", CU_MEM_LOCATION_TYPE_DEVICE, 77 },
    };
    size_t bytes = 64 << 20;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    for (size_t i = 0; i < sizeof locations / sizeof *locations; i++) {
        CUmemAllocationProp properties;
        CUmemHandle handle = 0;
        memset(&properties, 0, sizeof properties);
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = locations[i].type;
        properties.location.id = locations[i].id;
        memset(properties.allocFlags.reserved, 0xa5, sizeof properties.allocFlags.reserved);
        size_t before = available();
        int error = cuMemCreate(&handle, bytes, &properties, 0);
        printf("%s %d %zu\n", locations[i].name, error, before - available());
        if (!error) printf("%s released %d %zu\n", locations[i].name, cuMemRelease(handle), before - available());
    }
    return 0;
}
