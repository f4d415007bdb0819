/* Allocates, works and frees at random, and never waits before it frees: recycle SEED PAIRS [WAYS].
 *
 * Each block is used in a single stream between its allocation and its free, by kernels, fills, copies within the device and
 * copies from another device's context; streams are destroyed while they work. So two pieces of work of different streams are
 * pending on one block only if it was handed out too early, which the stand-in counts (`--check-uses on`).
 *
 * WAYS: letters. t: three threads. p: copies to a second device. c: a thread that captures again and again. r: reckless, the
 * program keeps blocks for itself without asking anybody: what must be counted. Prints pairs and errors. */
#include "driver.h"
#include <pthread.h>
#include <unistd.h>

CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream);

enum { STREAMS = 4, HELD = 6, KEPT = 8 };
static const size_t sizes[] = { 1 << 20, 2 << 20, 3 << 20 };
static CUcontext contexts[2];
static CUfunction function;
static int reckless, devices = 1, threads = 1, captures, done;
static long pairs;
static unsigned long long seed;

struct block { CUdeviceptr pointer; size_t bytes; CUstream stream; int device; };
struct result { long pairs, errors; };

static unsigned next(unsigned long long *random)
{
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return *random >> 33;
}

static int work(struct block *block, CUdeviceptr far, unsigned how)
{
    CUdeviceptr pointer = block->pointer;
    void *parameters[] = { &pointer };
    if (block->device) return cuMemcpyPeerAsync(far, contexts[1], pointer, contexts[0], block->bytes, block->stream);
    switch (how % 3) {
    case 0: return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, block->stream, parameters, NULL);
    case 1: return cuMemsetD8Async(pointer, how, block->bytes, block->stream);
    default: return cuMemcpyDtoDAsync_v2(pointer, pointer + block->bytes / 2, block->bytes / 2, block->stream);
    }
}

static void *run(void *argument)
{
    struct result *result = argument;
    unsigned long long random = seed * 77 + (result->pairs + 1) * 1234567;
    CUstream streams[2][STREAMS];
    struct block held[HELD] = { 0 };
    CUdeviceptr kept[3][KEPT] = { 0 };
    int keeps[3] = { 0 };
    CUdeviceptr far[STREAMS] = { 0 }; /* each stream of the second device copies to a block of its own */
    long count = 0, errors = 0;
    for (int device = devices - 1; device >= 0; device--) {
        errors += !!cuCtxSetCurrent(contexts[device]);
        for (int i = 0; i < STREAMS; i++) errors += !!cuStreamCreate(&streams[device][i], i % 2);
        for (int i = 0; device && i < STREAMS; i++) errors += !!cuMemAlloc_v2(&far[i], 4 << 20);
    }
    while (count < pairs) {
        struct block *block = &held[next(&random) % HELD];
        if (block->pointer) {
            int size = block->bytes == sizes[0] ? 0 : block->bytes == sizes[1] ? 1 : 2;
            if (reckless && keeps[size] < KEPT) kept[size][keeps[size]++] = block->pointer;
            else errors += !!cuMemFree_v2(block->pointer);
            block->pointer = 0;
            count++;
        } else {
            int size = next(&random) % 3;
            block->bytes = sizes[size];
            block->device = devices > 1 && next(&random) % 3 == 0;
            int at = next(&random) % STREAMS;
            block->stream = streams[block->device][at];
            if (reckless && keeps[size]) block->pointer = kept[size][--keeps[size]];
            else errors += !!cuMemAlloc_v2(&block->pointer, block->bytes);
            for (unsigned i = next(&random) % 3; block->pointer && i < 3; i++) errors += !!work(block, far[at], next(&random));
        }
        if (next(&random) % 64 == 0) {
            int at = next(&random) % STREAMS, used = 0;
            for (int i = 0; i < HELD; i++) used |= held[i].pointer && held[i].stream == streams[0][at];
            if (!used) {
                errors += !!cuStreamDestroy_v2(streams[0][at]);
                errors += !!cuStreamCreate(&streams[0][at], at % 2);
            }
        }
    }
    for (int i = 0; i < HELD; i++) if (held[i].pointer) errors += !!cuMemFree_v2(held[i].pointer);
    for (int i = 0; i < 3; i++) while (keeps[i]) errors += !!cuMemFree_v2(kept[i][--keeps[i]]);
    result->pairs = count;
    result->errors = errors;
    return NULL;
}

/* Thread-local captures of an empty graph, which no call of another thread may spoil. */
static void *capture(void *argument)
{
    struct result *result = argument;
    CUstream stream;
    CUgraph graph;
    result->errors += !!cuCtxSetCurrent(contexts[0]);
    result->errors += !!cuStreamCreate(&stream, 1);
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
        result->errors += !!cuStreamBeginCapture_v2(stream, 1);
        result->errors += !!cuStreamEndCapture(stream, &graph);
        result->pairs++;
        usleep(2000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const char kernel[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry sim_spin_us_2000(.param .u64 p){ret;}\n";
    struct result results[3] = { { 0, 0 }, { 1, 0 }, { 2, 0 } }, captured = { 0, 0 };
    pthread_t running[3], capturing;
    CUmodule module;
    if (argc < 3) return 64;
    seed = strtoull(argv[1], NULL, 0);
    pairs = atol(argv[2]);
    for (const char *way = argc > 3 ? argv[3] : ""; *way; way++) {
        if (*way == 'r') reckless = 1;
        if (*way == 't') threads = 3;
        if (*way == 'p') devices = 2;
        if (*way == 'c') captures = 1;
    }
    int error = cuInit(0);
    for (int i = devices - 1; !error && i >= 0; i--) {
        error = cuDevicePrimaryCtxRetain(&contexts[i], i);
        if (!error) error = cuCtxSetCurrent(contexts[i]);
    }
    if (!error) error = cuModuleLoadData(&module, kernel);
    if (!error) error = cuModuleGetFunction(&function, module, "sim_spin_us_2000");
    if (error) {
        printf("error=%d\n", error);
        return 1;
    }
    if (captures) pthread_create(&capturing, NULL, capture, &captured);
    for (int i = 0; i < threads; i++) pthread_create(&running[i], NULL, run, &results[i]);
    for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    if (captures) pthread_join(capturing, NULL);
    for (int i = 1; i < threads; i++) {
        results[0].pairs += results[i].pairs;
        results[0].errors += results[i].errors;
    }
    printf("pid=%d\npairs=%ld\nerrors=%ld\ncaptures=%ld\nspoilt=%ld\n", getpid(), results[0].pairs, results[0].errors, captured.pairs, captured.errors);
    return 0;
}
