/* Calls the driver when most of the process is gone: in atexit handlers, in a destructor, in the destructor of a
 * thread-local, and from a thread that outlives main. Prints what each call answers. */
#include "driver.h"
#include <pthread.h>
#include <unistd.h>

static pthread_key_t key;
static CUcontext context;

static void tell(const char *where)
{
    size_t free_bytes = 0, total = 0;
    CUdeviceptr pointer = 0;
    cuCtxSetCurrent(context);
    int info = cuMemGetInfo_v2(&free_bytes, &total), allocated = cuMemAlloc_v2(&pointer, 1 << 20);
    int freed = allocated ? -1 : cuMemFree_v2(pointer);
    printf("%s %d %d %d\n", where, info, allocated, freed);
    fflush(stdout);
}

static void at_exit(void) { tell("atexit"); }
static void of_thread(void *unused) { (void)unused; tell("thread-local"); }
__attribute__((destructor)) static void last(void) { tell("destructor"); }

static void *body(void *unused)
{
    pthread_setspecific(key, &key);
    tell("thread");
    return unused;
}

int main(void)
{
    pthread_t thread;
    atexit(at_exit); /* registered before the driver's own handlers, so it runs after them */
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    atexit(at_exit);
    pthread_key_create(&key, of_thread);
    pthread_create(&thread, NULL, body, NULL);
    pthread_join(thread, NULL);
    tell("main");
    return 0;
}
