/* Gets one allocating function by every route a program has and allocates through it until it is refused. One line per
 * route: its name, the error of the refusal, the MiB it got. Everything is freed between routes.
 *
 *   routes [MIB_AT_ONCE [MOST_MIB]]    gives up after MOST_MIB, with error 0 */
#include "driver.h"
#include <dlfcn.h>

typedef CUresult allocate(CUdeviceptr *, size_t);
typedef CUresult allocate_async(CUdeviceptr *, size_t, CUstream);
typedef CUresult lookup_v1(const char *, void **, int, unsigned long long);
typedef CUresult lookup_v2(const char *, void **, int, unsigned long long, int *);

enum { BLOCKS = 4096, PER_THREAD = 2 };
static CUdeviceptr blocks[BLOCKS];
static size_t step = 64ull << 20, most = 1ull << 40;

static void try(const char *route, void *function, int async)
{
    if (!function) { printf("%s absent\n", route); return; }
    int error = 0, count = 0;
    while (!error && count < BLOCKS && step * (size_t)count < most) {
        error = async ? ((allocate_async *)function)(&blocks[count], step, NULL) : ((allocate *)function)(&blocks[count], step);
        count += !error;
    }
    printf("%s %d %zu\n", route, error, (step * (size_t)count) >> 20);
    while (count) if (cuMemFree_v2(blocks[--count])) { printf("%s cannot free\n", route); return; }
    CUmemoryPool pool;
    if (!cuDeviceGetDefaultMemPool(&pool, 0)) cuMemPoolTrimTo(pool, 0);
}

int main(int argc, char **argv)
{
    CUcontext context;
    void *found = NULL;
    int status = -1;
    if (argc > 1) step = strtoull(argv[1], NULL, 10) << 20;
    if (argc > 2) most = strtoull(argv[2], NULL, 10) << 20;
    int error = cuInit(0);
    if (!error) error = cuDevicePrimaryCtxRetain(&context, 0);
    if (!error) error = cuCtxSetCurrent(context);
    if (error) { printf("no context: %d\n", error); return 1; }

    try("linked", (void *)cuMemAlloc_v2, 0);
    try("dlsym_default", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), 0);
    try("dlsym_next", dlsym(RTLD_NEXT, "cuMemAlloc_v2"), 0);
    void *handle = dlopen("libcuda.so.1", RTLD_NOW), *unversioned = dlopen("libcuda.so", RTLD_NOW);
    try("dlsym_handle", handle ? dlsym(handle, "cuMemAlloc_v2") : NULL, 0);
    try("dlsym_libcuda_so", unversioned ? dlsym(unversioned, "cuMemAlloc_v2") : NULL, 0);
    try("dlvsym", dlvsym(handle, "cuMemAlloc_v2", "libcuda.so.1"), 0);

    error = cuGetProcAddress("cuMemAlloc", &found, 3020, 0);
    try("lookup_v1", error ? NULL : found, 0);
    error = cuGetProcAddress_v2("cuMemAlloc", &found, 3020, 0, &status);
    try("lookup_v2", error ? NULL : found, 0);
    lookup_v2 *looked_up = dlsym(handle, "cuGetProcAddress_v2");
    error = looked_up ? looked_up("cuMemAlloc", &found, 13000, 0, &status) : 1;
    try("lookup_of_lookup_v2", error ? NULL : found, 0);
    lookup_v1 *nested = NULL;
    if (looked_up) looked_up("cuGetProcAddress", (void **)&nested, 11030, 0, &status);
    error = nested ? nested("cuMemAlloc", &found, 13000, 0) : 1;
    try("lookup_within_lookup", error ? NULL : found, 0);
    error = cuGetProcAddress_v2("cuMemAllocAsync", &found, 11020, PER_THREAD, &status);
    try("per_thread_lookup", error ? NULL : found, 1);
    try("per_thread_linked", (void *)cuMemAllocAsync_ptsz, 1);
    return 0;
}
