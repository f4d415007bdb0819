/* What any CUDA driver must do, one line of JSON per check: conformance DRIVER [breaking]. DRIVER is the library to open,
 * by path or name: the stand-in's, the shim, or a real one. Each line is {"check", "ok", "value"}; values do not
 * depend on the device or on time, so that two drivers' lists can be compared word for word. Ends with 1 if a check failed,
 * with 69 if there is no device. With `breaking` it breaks its context, in a process of its own. */
#include "driver.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_READY = 600, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_HANDLE = 400 };

static void *driver;
static int failed;

static void *find(const char *name)
{
    void *function = dlsym(driver, name);
    if (!function) {
        printf("{\"check\":\"symbol %s\",\"ok\":false,\"value\":\"missing\"}\n", name);
        exit(1);
    }
    return function;
}

/* Every function is looked up by its exported name, once per place it is called from. */
#define CALL(name, types, ...) ({ static CUresult (*call)types; if (!call) call = find(#name); call(__VA_ARGS__); })

/* `value` where it says more than yes or no. */
static void check(const char *name, int ok, long value)
{
    failed |= !ok;
    printf("{\"check\":\"%s\",\"ok\":%s,\"value\":%ld}\n", name, ok ? "true" : "false", value);
    fflush(stdout);
}

static void is(const char *name, long value, long wanted) { check(name, value == wanted, value); }

typedef void *H;
#define alloc(p, n) CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), p, n)
#define release(p) CALL(cuMemFree_v2, (CUdeviceptr), p)
#define info(f, t) CALL(cuMemGetInfo_v2, (size_t *, size_t *), f, t)
#define stream_create(s, f) CALL(cuStreamCreate, (H *, unsigned), s, f)
#define stream_wait(s) CALL(cuStreamSynchronize, (H), s)
#define stream_query(s) CALL(cuStreamQuery, (H), s)
#define stream_destroy(s) CALL(cuStreamDestroy_v2, (H), s)
#define event_create(e, f) CALL(cuEventCreate, (H *, unsigned), e, f)
#define record(e, s) CALL(cuEventRecord, (H, H), e, s)
#define event_query(e) CALL(cuEventQuery, (H), e)
#define event_wait(e) CALL(cuEventSynchronize, (H), e)
#define elapsed(m, a, b) CALL(cuEventElapsedTime, (float *, H, H), m, a, b)
#define follow(s, e) CALL(cuStreamWaitEvent, (H, H, unsigned), s, e, 0)
#define context_wait() CALL(cuCtxSynchronize, (void))
#define launch(f, g, b, s, p) CALL(cuLaunchKernel, (H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **), \
                                   f, g, 1, 1, b, 1, 1, 0, s, p, NULL)

/* Spins for as long as its argument says; the stand-in reads the same from the name. */
#define SPIN(us) \
    ".visible .entry conformance_sim_spin_us_" #us "(.param .u64 nanoseconds)\n{\n" \
    " .reg .u64 %now, %end, %length;\n .reg .pred %early;\n ld.param.u64 %length, [nanoseconds];\n" \
    " mov.u64 %now, %globaltimer;\n add.u64 %end, %now, %length;\nagain:\n mov.u64 %now, %globaltimer;\n" \
    " setp.lt.u64 %early, %now, %end;\n @%early bra again;\n ret;\n}\n"
static const char image[] = ".version 6.3\n.target sm_70\n.address_size 64\n" SPIN(2000) SPIN(100000)
    ".visible .entry conformance_sim_fault_700()\n{\n .reg .u64 %a;\n .reg .u32 %v;\n mov.u64 %a, 16;\n mov.u32 %v, 7;\n"
    " st.global.u32 [%a], %v;\n ret;\n}\n";

static H context, module, brief, lengthy;
static uint64_t brief_ns = 2000000, lengthy_ns = 100000000;

static int run(H function, H stream)
{
    void *arguments[] = { function == brief ? (void *)&brief_ns : (void *)&lengthy_ns };
    return launch(function, 1, 32, stream, arguments);
}

static void before_init(void)
{
    int count;
    CUdeviceptr pointer;
    is("count-before-init", CALL(cuDeviceGetCount, (int *), &count), CUDA_ERROR_NOT_INITIALIZED);
    is("alloc-before-init", alloc(&pointer, 64), CUDA_ERROR_NOT_INITIALIZED);
    is("init-with-flags", CALL(cuInit, (unsigned), 1), INVALID_VALUE);
}

static void devices(void)
{
    int device, count = 0, least, greatest;
    size_t total;
    CUdeviceptr pointer;
    is("count", CALL(cuDeviceGetCount, (int *), &count), 0);
    check("there-is-a-device", count > 0, 1);
    is("negative-ordinal", CALL(cuDeviceGet, (int *, int), &device, -1), INVALID_DEVICE);
    is("ordinal-beyond", CALL(cuDeviceGet, (int *, int), &device, count), INVALID_DEVICE);
    is("null-output", CALL(cuDeviceGet, (int *, int), NULL, 0), INVALID_VALUE);
    is("alloc-without-context", alloc(&pointer, 64), INVALID_CONTEXT);
    is("sync-without-context", context_wait(), INVALID_CONTEXT);
    is("retain", CALL(cuDevicePrimaryCtxRetain, (H *, int), &context, 0), 0);
    is("set-current", CALL(cuCtxSetCurrent, (H), context), 0);
    is("total", CALL(cuDeviceTotalMem_v2, (size_t *, int), &total, 0), 0);
    is("priorities", CALL(cuCtxGetStreamPriorityRange, (int *, int *), &least, &greatest), 0);
    check("greatest-priority-is-lower", greatest <= least && least == 0, least);
}

static void contexts(void)
{
    H second, popped = NULL, now = NULL;
    int device = -1;
    is("context-create", CALL(cuCtxCreate_v2, (H *, unsigned, int), &second, 0, 0), 0);
    is("current-is-new", (CALL(cuCtxGetCurrent, (H *), &now), now == second), 1);
    is("pop", CALL(cuCtxPopCurrent_v2, (H *), &popped), 0);
    is("popped-is-new", popped == second, 1);
    is("current-is-old", (CALL(cuCtxGetCurrent, (H *), &now), now == context), 1);
    is("push", CALL(cuCtxPushCurrent_v2, (H), second), 0);
    is("device-of-context", (CALL(cuCtxGetDevice, (int *), &device), device), 0);
    is("destroy", CALL(cuCtxDestroy_v2, (H), second), 0);
    is("set-again", CALL(cuCtxSetCurrent, (H), context), 0);
}

static void memory(void)
{
    CUdeviceptr a = 0, b = 0;
    size_t before, during, after, total;
    unsigned char out[4096], back[4096];
    is("alloc-nothing", alloc(&a, 0), INVALID_VALUE);
    is("alloc-null", alloc(NULL, 64), INVALID_VALUE);
    is("alloc-too-much", alloc(&a, (size_t)1 << 50), OUT_OF_MEMORY);
    is("free-null", release(0), 0);
    is("free-garbage", release(0x10), INVALID_VALUE);
    is("info-before", info(&before, &total), 0);
    is("alloc", alloc(&a, 256 << 20), 0);
    is("info-during", info(&during, &total), 0);
    check("free-falls-by-it", before - during >= 256 << 20 && during <= total, 1);
    check("aligned", a % 256 == 0, (long)(a % 256));
    is("alloc-small", alloc(&b, sizeof out), 0);
    for (unsigned i = 0; i < sizeof out; i++) out[i] = (unsigned char)(i * 7);
    is("copy-in", CALL(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t), b, out, sizeof out), 0);
    is("copy-within", CALL(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t), a, b, sizeof out), 0);
    is("fill", CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), a + 16, 0x5a, 16), 0);
    is("copy-out", CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, a, sizeof back), 0);
    memset(out + 16, 0x5a, 16);
    is("bytes-round-trip", memcmp(out, back, sizeof out), 0);
    is("free", release(a), 0);
    is("free-twice", release(a), INVALID_VALUE);
    is("free-inside", release(b + 16), INVALID_VALUE);
    is("free-small", release(b), 0);
    is("info-after", info(&after, &total), 0);
    check("free-comes-back", after >= before, 1);
}

static void pools(void)
{
    CUdeviceptr a = 0;
    H stream;
    is("pool-stream", stream_create(&stream, 1), 0);
    is("alloc-async", CALL(cuMemAllocAsync, (CUdeviceptr *, size_t, H), &a, 1 << 20, stream), 0);
    is("fill-async", CALL(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, H), a, 1, 1 << 20, stream), 0);
    is("free-async", CALL(cuMemFreeAsync, (CUdeviceptr, H), a, stream), 0);
    is("pool-wait", stream_wait(stream), 0);
    is("pool-destroy", stream_destroy(stream), 0);
}

static void events(void)
{
    H a, b, timeless, stream;
    float ms = -1;
    is("stream-bad-flags", stream_create(&stream, 0x100), INVALID_VALUE);
    stream_create(&stream, 1);
    is("event-create", event_create(&a, 0) | event_create(&b, 0) | event_create(&timeless, 2), 0);
    is("unrecorded-is-complete", event_query(a), 0);
    is("elapsed-unrecorded", elapsed(&ms, a, b), INVALID_HANDLE);
    is("record", record(a, stream), 0);
    is("launch", run(lengthy, stream), 0);
    is("record-behind", record(b, stream), 0);
    is("query-running", event_query(b), NOT_READY);
    is("stream-query-running", stream_query(stream), NOT_READY);
    is("elapsed-running", elapsed(&ms, a, b), NOT_READY);
    is("event-wait", event_wait(b), 0);
    is("stream-query-done", stream_query(stream), 0);
    is("elapsed", elapsed(&ms, a, b), 0);
    check("elapsed-is-the-kernels", ms >= 90 && ms < 2000, 1);
    is("backwards-is-negative", (elapsed(&ms, b, a), ms < 0), 1);
    is("record-timeless", record(timeless, stream), 0);
    is("wait-timeless", event_wait(timeless), 0);
    is("elapsed-timeless", elapsed(&ms, a, timeless), INVALID_HANDLE);
    is("event-destroy", CALL(cuEventDestroy_v2, (H), timeless), 0);
    is("stream-destroy", stream_destroy(stream), 0);
}

/* The order of kernels on two streams: behind[0] is recorded behind a long kernel on `first`, then [1] on `second`. */
static float gap(H first, H second)
{
    H behind[2];
    float ms = 0;
    for (int i = 0; i < 2; i++) event_create(&behind[i], 0);
    run(lengthy, first);
    record(behind[0], first);
    run(brief, second);
    record(behind[1], second);
    context_wait();
    elapsed(&ms, behind[0], behind[1]);
    return ms;
}

static int order[4], count;
static pthread_t caller;
static void called(void *which) { order[count++ & 3] = pthread_equal(caller, pthread_self()) ? 9 : (int)(intptr_t)which; }

static void streams(void)
{
    H blocking, free_running, event;
    stream_create(&blocking, 0);
    stream_create(&free_running, 1);
    event_create(&event, 0);
    is("legacy-waits-for-blocking", gap(blocking, NULL) >= 0, 1);
    is("blocking-waits-for-legacy", gap(NULL, blocking) >= 0, 1);
    is("non-blocking-does-not-wait", gap(NULL, free_running) < 0, 1);
    is("per-thread-waits-for-legacy", gap(NULL, (H)2) >= 0, 1);
    run(lengthy, blocking);
    record(event, blocking);
    is("wait-event", follow(free_running, event), 0);
    run(brief, free_running);
    stream_wait(free_running);
    is("waiting-stream-came-after", event_query(event), 0);
    caller = pthread_self();
    for (int i = 1; i <= 3; i++) {
        run(brief, blocking);
        is("host-function", CALL(cuLaunchHostFunc, (H, void (*)(void *), void *), blocking, called, (void *)(intptr_t)i), 0);
    }
    is("host-wait", stream_wait(blocking), 0);
    is("host-functions-in-order-on-another-thread", order[0] * 100 + order[1] * 10 + order[2], 123);
    int error = 0;
    for (int i = 0; i < 20; i++) error |= run(brief, free_running);
    is("launches-in-a-row", error, 0);
    is("destroy-with-work", stream_destroy(free_running), 0);
    is("destroyed-default", stream_destroy(NULL), INVALID_HANDLE);
    stream_wait(blocking);
}

static void launches(void)
{
    H none;
    void *arguments[] = { &brief_ns };
    is("missing-function", CALL(cuModuleGetFunction, (H *, H, const char *), &none, module, "absent"), 500);
    is("no-blocks", launch(brief, 0, 32, NULL, arguments), INVALID_VALUE);
    is("no-threads", launch(brief, 1, 0, NULL, arguments), INVALID_VALUE);
    is("too-many-threads", launch(brief, 1, 2048, NULL, arguments), INVALID_VALUE);
    is("cooperative", CALL(cuLaunchCooperativeKernel, (H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **),
                           brief, 1, 1, 1, 32, 1, 1, 0, NULL, arguments), 0);
    is("cooperative-too-large", CALL(cuLaunchCooperativeKernel, (H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **),
                                     brief, 1 << 20, 1, 1, 1024, 1, 1, 0, NULL, arguments), 720);
    is("launches-done", context_wait(), 0);
    is("garbage-image", CALL(cuModuleLoadData, (H *, const void *), &none, "\x01\x02\x03garbage") != 0, 1);
}

static void lookups(void)
{
    void *found = NULL;
    int status = -1;
    is("lookup", CALL(cuGetProcAddress_v2, (const char *, void **, int, unsigned long long, int *), "cuMemAlloc", &found, 12000, 0, &status), 0);
    check("lookup-found", found && status == 0, status);
    CALL(cuGetProcAddress_v2, (const char *, void **, int, unsigned long long, int *), "cuNoSuchThing", &found, 12000, 0, &status);
    check("lookup-unknown", !found && status == 1, status);
}

static void forks(void)
{
    int state;
    CUdeviceptr pointer;
    pid_t child = fork();
    if (!child) _exit(alloc(&pointer, 64));
    waitpid(child, &state, 0);
    is("forked-child", WIFEXITED(state) ? WEXITSTATUS(state) : -1, CUDA_ERROR_NOT_INITIALIZED);
}

static void breaking(void)
{
    H fault, stream;
    CUdeviceptr pointer;
    stream_create(&stream, 1);
    is("function", CALL(cuModuleGetFunction, (H *, H, const char *), &fault, module, "conformance_sim_fault_700"), 0);
    is("launch-of-fault", launch(fault, 1, 1, stream, NULL), 0);
    is("fault-is-told-by-the-wait", stream_wait(stream), 700);
    is("fault-sticks-to-waits", context_wait(), 700);
    is("fault-sticks-to-allocations", alloc(&pointer, 64), 700);
    is("fault-sticks-to-launches", run(brief, stream), 700);
    is("fault-sticks-to-queries", stream_query(stream), 700);
}

int main(int argc, char **argv)
{
    if (argc < 2 || !(driver = dlopen(argv[1], RTLD_NOW))) {
        fprintf(stderr, "%s\n", argc < 2 ? "conformance DRIVER [breaking]" : dlerror());
        return 64;
    }
    if (argc == 2) before_init();
    int error = CALL(cuInit, (unsigned), 0);
    if (error) {
        fprintf(stderr, "cuInit answers %d\n", error);
        return 69;
    }
    devices();
    is("module", CALL(cuModuleLoadData, (H *, const void *), &module, image), 0);
    is("brief", CALL(cuModuleGetFunction, (H *, H, const char *), &brief, module, "conformance_sim_spin_us_2000"), 0);
    is("lengthy", CALL(cuModuleGetFunction, (H *, H, const char *), &lengthy, module, "conformance_sim_spin_us_100000"), 0);
    if (argc > 2) {
        breaking();
        return failed;
    }
    contexts();
    memory();
    pools();
    events();
    streams();
    launches();
    lookups();
    forks();
    return failed;
}
