/* Opens a driver and uses it, without being linked to one: opener PATH BYTES, the error of the call that takes BYTES, held until
 * stdin ends. */
#include "driver.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    CUcontext context;
    CUdeviceptr pointer;
    if (argc < 3) return 64;
    void *driver = dlopen(argv[1], RTLD_NOW);
    if (!driver) { fprintf(stderr, "%s\n", dlerror()); return 69; }
    int error = ((CUresult (*)(unsigned))dlsym(driver, "cuInit"))(0);
    if (!error) error = ((CUresult (*)(CUcontext *, CUdevice))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
    if (!error) error = ((CUresult (*)(CUcontext))dlsym(driver, "cuCtxSetCurrent"))(context);
    if (!error) error = ((CUresult (*)(CUdeviceptr *, size_t))dlsym(driver, "cuMemAlloc_v2"))(&pointer, strtoull(argv[2], NULL, 10));
    printf("%d\n", error);
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
