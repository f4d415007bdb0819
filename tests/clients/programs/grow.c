/* The clients' protocol (protocol.py) in C over the driver API: linked to it, or, compiled with OPENED, opening it. */
#include "../../programs/driver.h"
#include <dlfcn.h>

#ifdef OPENED
#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
FUNCTIONS(POINTER)
#define LOOK_UP(name, arguments) *(void **)&p_##name = dlsym(driver, #name);
#define CALL(name) p_##name
#else
#define CALL(name) name
#endif

int main(int argc, char **argv)
{
    CUcontext context;
    CUdeviceptr pointer;
    size_t free_bytes = 0, total = 0;
    int error = 0, granted = 0;
    if (argc < 2) return 64;
#ifdef OPENED
    void *driver = dlopen("libcuda.so", RTLD_NOW);
    if (!driver) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    FUNCTIONS(LOOK_UP)
#endif
    if (CALL(cuInit)(0) || CALL(cuDevicePrimaryCtxRetain)(&context, 0) || CALL(cuCtxSetCurrent)(context)) return 1;
    if (!strcmp(argv[1], "below")) {
        int count = 0;
        error = CALL(cuDeviceGetCount)(&count);
        printf("%d %d\n", error, count);
        error = CALL(cuMemAlloc_v2)(&pointer, 1 << 20);
        printf("alloc %d\n", error);
        printf("free %d\n", CALL(cuMemFree_v2)(pointer));
        error = CALL(cuMemAlloc_v2)(&pointer, 0);
        printf("nothing %d\n", error);
        return 0;
    }
    if (argc < 4) return 64;
    CALL(cuMemGetInfo_v2)(&free_bytes, &total);
    while (granted < atoi(argv[3]) && !error) {
        error = CALL(cuMemAlloc_v2)(&pointer, strtoull(argv[2], NULL, 10) << 20);
        granted += !error;
    }
    printf("free=%zu\ntotal=%zu\ngranted=%d\nerror=%d\n", free_bytes, total, granted, error);
    return 0;
}
