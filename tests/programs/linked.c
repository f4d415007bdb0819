/* Linked with the driver; allocates to the refusal. */
#include "driver.h"

int main(void)
{
    CUcontext context;
    CUdeviceptr pointer;
    int error = cuInit(0);
    if (!error) error = cuDevicePrimaryCtxRetain(&context, 0);
    if (!error) error = cuCtxSetCurrent(context);
    if (error) { fprintf(stderr, "no context: %d\n", error); return 1; }
    for (int i = 0; !error && i < 64; i++) error = cuMemAlloc_v2(&pointer, 64 << 20);
    printf("refused=%d\n", error);
    return 0;
}
