/* Makes one call N times and prints how long that took: calls KIND N. The benches compare runs with different N, with and
 * without the shim, and thereby see what one call costs.
 *
 *   launch | info | pair | lookup | current     after everything is warm
 *   ring                                        pairs of free and allocation, 64 and 64, with a wait for the context between
 *   find                                        nanoseconds of this process's first call, one that needs no device
 *   attach                                      nanoseconds of its cuInit, which comes next */
#include "driver.h"
#include <time.h>

CUresult cuCtxGetCurrent(CUcontext *context);

static unsigned long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static CUfunction function;
enum { RING = 64 };
static CUdeviceptr ring[RING];

static int call(const char *kind, long count)
{
    CUdeviceptr pointer;
    CUcontext context;
    size_t free_bytes, total;
    void *found, *parameters[] = { &pointer };
    int error = 0, status;
    switch (kind[0]) {
    case 'l':
        if (kind[1] == 'a') for (long i = 0; i < count; i++) error |= cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
        else for (long i = 0; i < count; i++) error |= cuGetProcAddress_v2("cuMemAlloc", &found, 13000, 0, &status);
        break;
    case 'i': for (long i = 0; i < count; i++) error |= cuMemGetInfo_v2(&free_bytes, &total); break;
    case 'p':
        for (long i = 0; i < count; i++) {
            error |= cuMemAlloc_v2(&pointer, 2 << 20);
            error |= cuMemFree_v2(pointer);
        }
        break;
    case 'r':
        for (long i = 0; i < count; i += RING) {
            for (int at = 0; at < RING; at++) if (ring[at]) error |= cuMemFree_v2(ring[at]);
            error |= cuCtxSynchronize();
            for (int at = 0; at < RING; at++) error |= cuMemAlloc_v2(&ring[at], 2 << 20);
        }
        break;
    case 'c': for (long i = 0; i < count; i++) error |= cuCtxGetCurrent(&context); break;
    }
    return error;
}

int main(int argc, char **argv)
{
    static const char kernel[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p){ret;}\n";
    CUcontext context;
    CUmodule module;
    if (argc < 3) return 64;
    int version;
    unsigned long long start = now();
    int error = cuDriverGetVersion(&version);
    unsigned long long found = now();
    if (!error) error = cuInit(0);
    unsigned long long attached = now();
    if (argv[1][0] == 'f' || argv[1][0] == 'a') {
        printf("ns=%llu\n", argv[1][0] == 'f' ? found - start : attached - found);
        return error;
    }
    if (!error) error = cuDevicePrimaryCtxRetain(&context, 0);
    if (!error) error = cuCtxSetCurrent(context);
    if (!error) error = cuModuleLoadData(&module, kernel);
    if (!error) error = cuModuleGetFunction(&function, module, "k");
    if (!error) error = call(argv[1], 100);
    start = now();
    if (!error) error = call(argv[1], atol(argv[2]));
    printf("ns=%llu\nerror=%d\n", now() - start, error);
    return error != 0;
}
