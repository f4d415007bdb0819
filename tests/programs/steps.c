/* Does what it is told, one line of stdin at a time, and answers each with one line: the CUDA error, then values.
 * A test drives several of these and thereby fixes the order of their steps.
 *
 *   init                 cuInit
 *   context D            makes device D's primary context current
 *   release D            gives it back
 *   total D              -> error bytes
 *   uuid D               -> error, 16 numbers
 *   count                -> error devices
 *   info                 -> error free total
 *   alloc|pitch|managed|async|pool|vmm|array|graph|captured BYTES   -> error slot
 *   free SLOT            by the call that belongs to it
 *   freeraw NUMBER       cuMemFree of any value
 *   churn N BYTES        N times alloc and free -> first error, how many pairs succeeded
 *   launch N             N launches of a 10-us kernel, then waits for them
 *   trim                 gives back what the device keeps for graphs -> error
 *   again SLOT           frees what a graph allocated and launches it once more -> error
 *   pid                  -> the process's number in its own namespace
 *   listed D             -> NVML's error, then pid and bytes of each process it lists on device D
 *   exit|_exit|abort|exec    ends in that way */
#include "driver.h"
#include <dlfcn.h>
#include <unistd.h>

enum { SLOTS = 65536 };
static struct { char kind; CUdeviceptr pointer; size_t bytes; CUmemHandle handle; CUarray array; CUgraph graph; CUgraphExec exec; } slots[SLOTS];
static int used;
static CUmemoryPool pool;
static int device;

/* A graph that allocates, made by nodes or by capture, and launched once. */
static int allocate_by_graph(int captured, size_t bytes, CUdeviceptr *pointer, CUgraph *graph, CUgraphExec *exec)
{
    static CUstream stream;
    CUDA_MEM_ALLOC_NODE_PARAMS node = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } } };
    CUgraphNode made;
    int error = stream ? 0 : cuStreamCreate(&stream, 1);
    if (captured) {
        if (!error) error = cuStreamBeginCapture_v2(stream, 0);
        if (!error) error = cuMemAllocAsync(pointer, bytes, stream);
        if (!error) error = cuStreamEndCapture(stream, graph);
    } else {
        node.bytesize = bytes;
        if (!error) error = cuGraphCreate(graph, 0);
        if (!error) error = cuGraphAddMemAllocNode(&made, *graph, NULL, 0, &node);
        *pointer = node.dptr;
    }
    if (!error) error = cuGraphInstantiateWithFlags(exec, *graph, 0);
    if (!error) error = cuGraphLaunch(*exec, stream);
    if (!error) error = cuStreamSynchronize(stream);
    if (error && *exec) cuGraphExecDestroy(*exec);
    if (error && *graph) cuGraphDestroy(*graph);
    return error;
}

static int allocate(const char *how, size_t bytes)
{
    CUdeviceptr pointer = 0;
    CUmemHandle handle = 0;
    CUarray array = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    size_t pitch;
    int error;
    if (!strcmp(how, "alloc")) error = cuMemAlloc_v2(&pointer, bytes);
    else if (!strcmp(how, "pitch")) error = cuMemAllocPitch_v2(&pointer, &pitch, 1 << 20, bytes >> 20, 16);
    else if (!strcmp(how, "managed")) error = cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL);
    else if (!strcmp(how, "async")) error = cuMemAllocAsync(&pointer, bytes, NULL);
    else if (!strcmp(how, "pool")) {
        CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
        error = pool ? 0 : cuMemPoolCreate(&pool, &properties);
        if (!error) error = cuMemAllocFromPoolAsync(&pointer, bytes, pool, NULL);
    } else if (!strcmp(how, "array")) { /* rows of 64 KiB */
        CUDA_ARRAY3D_DESCRIPTOR form = { 4096, (bytes + (1 << 16) - 1) >> 16, 0, CU_AD_FORMAT_FLOAT, 4, 0 };
        error = cuArray3DCreate_v2(&array, &form);
    } else if (!strcmp(how, "graph") || !strcmp(how, "captured")) {
        error = allocate_by_graph(how[0] == 'c', bytes, &pointer, &graph, &exec);
    } else {
        CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
        error = cuMemCreate(&handle, bytes, &properties, 0);
    }
    if (error) { printf("%d\n", error); return error; }
    if (used == SLOTS) { fprintf(stderr, "out of slots\n"); exit(99); }
    slots[used].kind = how[0];
    slots[used].pointer = pointer;
    slots[used].bytes = bytes;
    slots[used].handle = handle;
    slots[used].array = array;
    slots[used].graph = graph;
    slots[used].exec = exec;
    printf("0 %d\n", used++);
    return 0;
}

static int give_back(int slot)
{
    char kind = slots[slot].kind;
    if (kind == 'v') return cuMemRelease(slots[slot].handle);
    if (slots[slot].array) return cuArrayDestroy(slots[slot].array);
    if (slots[slot].exec) {
        int error = cuMemFree_v2(slots[slot].pointer);
        if (!error) error = cuGraphExecDestroy(slots[slot].exec);
        if (!error) error = cuGraphDestroy(slots[slot].graph);
        return error;
    }
    /* "async" and "alloc" begin alike; an asynchronous block may be freed either way, and a pool's too */
    return cuMemFree_v2(slots[slot].pointer);
}

static const char kernel[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry sim_spin_us_10(.param .u64 p){ret;}\n";

static int launch(int count)
{
    static CUmodule module;
    static CUfunction function;
    CUdeviceptr argument = 0;
    void *parameters[] = { &argument };
    int error = 0;
    if (!module) error = cuModuleLoadData(&module, kernel);
    if (!error && !function) error = cuModuleGetFunction(&function, module, "sim_spin_us_10");
    for (int i = 0; !error && i < count; i++) error = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
    return error ? error : cuCtxSynchronize();
}

static void *nvml(const char *name)
{
    static void *library;
    if (!library) library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

static void listed(unsigned ordinal)
{
    struct { unsigned pid; unsigned long long bytes; unsigned instance, compute; } list[256];
    int (*start)(void) = nvml("nvmlInit_v2");
    int (*by_index)(unsigned, void **) = nvml("nvmlDeviceGetHandleByIndex_v2");
    int (*running)(void *, unsigned *, void *) = nvml("nvmlDeviceGetComputeRunningProcesses_v3");
    unsigned count = 256;
    void *handle;
    int error = start && by_index && running ? start() : -1;
    if (!error) error = by_index(ordinal, &handle);
    if (!error) error = running(handle, &count, list);
    printf("%d", error);
    for (unsigned i = 0; !error && i < count; i++) printf(" %u %llu", list[i].pid, list[i].bytes);
    printf("\n");
}

int main(int argc, char **argv)
{
    char line[256], verb[32];
    (void)argc;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        unsigned long long number = 0, second = 0;
        int fields = sscanf(line, "%31s %llu %llu", verb, &number, &second);
        size_t free_bytes = 0, total = 0;
        CUcontext context;
        CUdevice got;
        int count = 0;
        if (fields < 1) continue;
        if (!strcmp(verb, "init")) printf("%d\n", cuInit(0));
        else if (!strcmp(verb, "context")) {
            int error = cuDeviceGet(&got, (int)number);
            if (!error) error = cuDevicePrimaryCtxRetain(&context, got);
            if (!error) error = cuCtxSetCurrent(context);
            device = (int)number;
            printf("%d\n", error);
        } else if (!strcmp(verb, "release")) printf("%d\n", cuDevicePrimaryCtxRelease_v2((int)number));
        else if (!strcmp(verb, "total")) { int error = cuDeviceTotalMem_v2(&total, (int)number); printf("%d %zu\n", error, total); }
        else if (!strcmp(verb, "uuid")) {
            unsigned char uuid[16] = { 0 };
            printf("%d", cuDeviceGetUuid(uuid, (int)number));
            for (int i = 0; i < 16; i++) printf(" %d", uuid[i]);
            printf("\n");
        } else if (!strcmp(verb, "count")) { int error = cuDeviceGetCount(&count); printf("%d %d\n", error, count); }
        else if (!strcmp(verb, "info")) { int error = cuMemGetInfo_v2(&free_bytes, &total); printf("%d %zu %zu\n", error, free_bytes, total); }
        else if (!strcmp(verb, "free")) printf("%d\n", give_back((int)number));
        else if (!strcmp(verb, "freeraw")) printf("%d\n", cuMemFree_v2(number));
        else if (!strcmp(verb, "trim")) printf("%d\n", cuDeviceGraphMemTrim(device));
        else if (!strcmp(verb, "again")) {
            int error = cuMemFree_v2(slots[number].pointer);
            if (!error) error = cuGraphLaunch(slots[number].exec, NULL);
            printf("%d\n", error ? error : cuCtxSynchronize());
        } else if (!strcmp(verb, "churn")) {
            int error = 0;
            unsigned long long pairs = 0;
            for (CUdeviceptr pointer; !error && pairs < number; pairs += !error) {
                error = cuMemAlloc_v2(&pointer, second);
                if (!error) error = cuMemFree_v2(pointer);
            }
            printf("%d %llu\n", error, pairs);
        } else if (!strcmp(verb, "launch")) printf("%d\n", launch((int)number));
        else if (!strcmp(verb, "pid")) printf("%d\n", getpid());
        else if (!strcmp(verb, "listed")) listed((unsigned)number);
        else if (!strcmp(verb, "exit")) exit(0);
        else if (!strcmp(verb, "_exit")) _exit(0);
        else if (!strcmp(verb, "abort")) abort();
        else if (!strcmp(verb, "exec")) execl("/bin/cat", "cat", NULL);
        else allocate(verb, number);
    }
    (void)argv;
    return 0;
}
