/* Opens the driver and looks up every function it knows, whatever the driver's age; then allocates to the refusal.
 *
 *   dynamic [LIBRARY [hold]]    another name than libcuda.so.1; keeps what it has until its stdin ends */
#include "driver.h"
#include <dlfcn.h>

#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
FUNCTIONS(POINTER)

int main(int argc, char **argv)
{
    void *driver = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
    CUcontext context;
    if (!driver) { fprintf(stderr, "%s\n", dlerror()); return 1; }
#define LOOK_UP(name, arguments) *(void **)&p_##name = dlsym(driver, #name); printf("symbol %s %d\n", #name, p_##name != NULL);
    FUNCTIONS(LOOK_UP)
    int error = p_cuInit(0);
    if (!error) error = p_cuDevicePrimaryCtxRetain(&context, 0);
    if (!error) error = p_cuCtxSetCurrent(context);
    if (error) { fprintf(stderr, "no context: %d\n", error); return 1; }
    CUdeviceptr pointer;
    for (int i = 0; !error && i < 64; i++) error = p_cuMemAlloc_v2(&pointer, 64 << 20);
    printf("refused=%d\n", error);
    fflush(stdout);
    if (argc > 2) while (getchar() != EOF) {}
    return 0;
}
