/* Uses a driver function that Stint's table does not know, linked and looked up, and is capped all the same. */
#include "driver.h"
#include <dlfcn.h>

CUresult cuBrandNew(int *answer);

int main(void)
{
    int answer = 0, status = -1;
    CUcontext context;
    CUdeviceptr pointer;
    void *found = NULL;
    int error = cuInit(0);
    if (!error) error = cuDevicePrimaryCtxRetain(&context, 0);
    if (!error) error = cuCtxSetCurrent(context);
    for (int i = 0; !error && i < 64; i++) error = cuMemAlloc_v2(&pointer, 64 << 20);
    printf("refused=%d\n", error);
    error = cuBrandNew(&answer);
    printf("new=%d %d\n", error, answer);
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*looked_up)(int *) = handle ? (CUresult(*)(int *))dlsym(handle, "cuBrandNew") : NULL;
    printf("looked_up=%d\n", looked_up ? looked_up(&answer) : -1);
    error = cuGetProcAddress_v2("cuNoSuchFunction", &found, 13000, 0, &status);
    printf("unknown=%d %d %d\n", error, found != NULL, status);
    printf("absent=%d\n", dlsym(handle, "cuNoSuchFunction") != NULL);
    const char *why = dlerror();
    printf("dlerror=%s\n", why && strstr(why, "undefined symbol: cuNoSuchFunction") ? "libc's" : why ? why : "none");
    return 0;
}
