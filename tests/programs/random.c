/* Allocates and frees at random, also what must not be freed, from two threads: random SEED, then one line of stdin a turn.
 *
 *   go N        N random steps -> bytes of the blocks it holds
 *   empty       frees everything, waits for the device, trims the pools -> error of the last call
 *
 * A step is an allocation by any of the calls (graphs among them), a free by the thread that allocated or by the other one, at once or in stream
 * order, a second free of the same block, or a free of an address nobody was given. */
#include "driver.h"
#include <pthread.h>
#include <stdint.h>

enum { MOST = 256 };
static struct { char kind; CUdeviceptr pointer; size_t bytes; CUmemHandle handle; CUgraph graph; CUgraphExec exec; } live[MOST];
static int count;
static size_t held;
static CUmemoryPool pool;
static CUcontext context;
static CUstream stream;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static int is_live(CUdeviceptr pointer)
{
    for (int i = 0; i < count; i++)
        if (live[i].kind != 'v' && pointer >= live[i].pointer && pointer < live[i].pointer + live[i].bytes) return 1;
    return 0;
}

/* A captured allocation, with another one that the graph frees itself. */
static int by_graph(size_t bytes, CUdeviceptr *pointer, CUgraph *graph, CUgraphExec *exec)
{
    CUdeviceptr inside;
    int error = cuStreamBeginCapture_v2(stream, 0);
    if (!error) error = cuMemAllocAsync(pointer, bytes, stream);
    if (!error) error = cuMemAllocAsync(&inside, bytes, stream);
    if (!error) error = cuMemFreeAsync(inside, stream);
    if (!error) error = cuStreamEndCapture(stream, graph);
    if (!error) error = cuGraphInstantiateWithFlags(exec, *graph, 0);
    if (!error) error = cuGraphLaunch(*exec, stream);
    if (error == CUDA_ERROR_OUT_OF_MEMORY) {
        cuGraphExecDestroy(*exec);
        cuGraphDestroy(*graph);
    }
    return error;
}

static void allocate(void)
{
    static const char kinds[] = "apmAPvg";
    char kind = kinds[draw(7)];
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    size_t bytes = draw(3) ? 1 + draw(8 << 20) : 1 + draw(4096), pitch;
    CUdeviceptr pointer = 0;
    CUmemHandle handle = 0;
    CUmemAllocationProp physical = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    int error = 0;
    if (count == MOST) return;
    switch (kind) {
    case 'a': error = cuMemAlloc_v2(&pointer, bytes); break;
    case 'p': bytes = 1 + bytes % 4096; error = cuMemAllocPitch_v2(&pointer, &pitch, bytes, 64, 4); break;
    case 'm': error = cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL); break;
    case 'A': error = cuMemAllocAsync(&pointer, bytes, NULL); break;
    case 'g': error = by_graph(bytes, &pointer, &graph, &exec); break;
    case 'P': error = cuMemAllocFromPoolAsync(&pointer, bytes, pool, NULL); break;
    default: bytes = (1 + draw(4)) << 21; error = cuMemCreate(&handle, bytes, &physical, 0);
    }
    if (error == CUDA_ERROR_OUT_OF_MEMORY) return;
    if (error) { fprintf(stderr, "allocation %c of %zu: %d\n", kind, bytes, error); exit(98); }
    live[count].kind = kind;
    live[count].pointer = pointer;
    live[count].handle = handle;
    live[count].graph = graph;
    live[count].exec = exec;
    live[count++].bytes = bytes;
    held += bytes;
}

static int release(int i, int ordered)
{
    CUdeviceptr pointer = live[i].pointer;
    CUmemHandle handle = live[i].handle;
    char kind = live[i].kind;
    CUgraph graph = live[i].graph;
    CUgraphExec exec = live[i].exec;
    held -= live[i].bytes;
    live[i] = live[--count];
    if (kind == 'v') return cuMemRelease(handle);
    if (kind == 'g') {
        int error = ordered ? cuMemFreeAsync(pointer, stream) : cuMemFree_v2(pointer);
        if (!error) error = cuGraphExecDestroy(exec);
        return error ? error : cuGraphDestroy(graph);
    }
    return ordered && (kind == 'A' || kind == 'P') ? cuMemFreeAsync(pointer, NULL) : cuMemFree_v2(pointer);
}

static void *elsewhere(void *index)
{
    int error = cuCtxSetCurrent(context);
    if (!error) error = release((int)(intptr_t)index, 0);
    return (void *)(intptr_t)error;
}

static void step(void)
{
    CUdeviceptr gone;
    pthread_t thread;
    void *error;
    int i = count ? (int)draw(count) : 0;
    switch (count ? draw(10) : 0) {
    default: allocate(); return;
    case 6: release(i, 1); return;
    case 7: release(i, 0); return;
    case 8:
        if (pthread_create(&thread, NULL, elsewhere, (void *)(intptr_t)i)) exit(97);
        pthread_join(thread, &error);
        return;
    case 9:
        if (draw(2)) { /* twice */
            char kind = live[i].kind;
            gone = live[i].pointer;
            release(i, 0);
            if (kind != 'v' && !is_live(gone)) cuMemFree_v2(gone);
        } else { /* of nobody */
            gone = draw(2) ? draw(UINT64_MAX) : 0x7f0000000000 + draw(1 << 30);
            if (!is_live(gone)) draw(2) ? cuMemFree_v2(gone) : cuMemFreeAsync(gone, NULL);
        }
    }
}

int main(int argc, char **argv)
{
    CUmemPoolProps in_pool = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUmemoryPool usual;
    char line[64];
    unsigned long long steps;
    setvbuf(stdout, NULL, _IOLBF, 0);
    state = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 2 + 1;
    int error = cuInit(0);
    if (!error) error = cuDevicePrimaryCtxRetain(&context, 0);
    if (!error) error = cuCtxSetCurrent(context);
    if (!error) error = cuMemPoolCreate(&pool, &in_pool);
    if (!error) error = cuDeviceGetDefaultMemPool(&usual, 0);
    if (!error) error = cuStreamCreate(&stream, 1);
    while (!error && fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "go %llu", &steps) == 1) {
            while (steps--) step();
            printf("%zu\n", held);
        } else {
            while (count && !error) error = release(0, 1);
            if (!error) error = cuCtxSynchronize();
            if (!error) error = cuMemPoolTrimTo(pool, 0);
            if (!error) error = cuMemPoolTrimTo(usual, 0);
            if (!error) error = cuDeviceGraphMemTrim(0);
            printf("%d\n", error);
        }
    }
    return error;
}
