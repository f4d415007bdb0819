/* Tries to get more device memory than it may, in one of the ways a tenant can think of. Prints the error of the call that
 * takes BYTES, then keeps what it has until stdin ends.
 *
 *   sneak open PATH BYTES      by a libcuda of its own choice, found by dlopen and dlsym
 *   sneak inner PATH BYTES     attaches as everybody, then uses PATH, a copy of the driver
 *   sneak traced PATH BYTES    attaches as everybody, then has itself debugged: its next call goes behind the shim; PATH is a
 *                              copy of the driver, to know where in it the function lies
 *   sneak close BYTES          closes every descriptor before and after cuInit
 *   sneak dup BYTES            puts /dev/null over every descriptor before and after cuInit
 *   sneak scribble SEED BYTES  attaches, then writes at random into the account it shares with the daemon, again and again */
#include "driver.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

typedef CUresult (*Alloc)(CUdeviceptr *, size_t);

static int start(void)
{
    CUcontext context;
    int error = cuInit(0);
    if (!error) error = cuDevicePrimaryCtxRetain(&context, 0);
    return error ? error : cuCtxSetCurrent(context);
}

static void hold(int error)
{
    printf("%d\n", error);
    fflush(stdout);
    while (getchar() != EOF) {}
    exit(0);
}

static void *library(const char *path)
{
    void *found = dlopen(path, RTLD_NOW);
    if (!found) { printf("dlopen: %s\n", dlerror()); exit(1); }
    return found;
}

static void over_descriptors(const char *how)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 3; fd < 1024; fd++)
        if (*how == 'c') close(fd);
        else if (fd != null && fcntl(fd, F_GETFD) >= 0) dup2(null, fd);
}

static volatile Alloc call = cuMemAlloc_v2;

/* Where the first mapping of the file begins. */
static char *base(const char *path)
{
    char line[1024];
    unsigned long from = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) && !(strstr(line, path) && sscanf(line, "%lx", &from) == 1)) {}
    fclose(maps);
    return (char *)from;
}

/* Initialises a driver found by dlsym, and takes memory by it. */
static int by_handle(void *own, size_t bytes)
{
    CUcontext context;
    CUdeviceptr pointer;
    int error = ((CUresult (*)(unsigned))dlsym(own, "cuInit"))(0);
    if (!error) error = ((CUresult (*)(CUcontext *, CUdevice))dlsym(own, "cuDevicePrimaryCtxRetain"))(&context, 0);
    if (!error) error = ((CUresult (*)(CUcontext))dlsym(own, "cuCtxSetCurrent"))(context);
    return error ? error : ((Alloc)dlsym(own, "cuMemAlloc_v2"))(&pointer, bytes);
}

static int traced(const char *path, size_t bytes)
{
    int error = start(), status;
    char *copy = dlsym(library(path), "cuMemAlloc_v2"), *real;
    CUdeviceptr pointer;
    if (error) return error;
    real = base("/sim/13/lib/libcuda.so.1") + (copy - base(path));
    pid_t debugger = fork(), me;
    if (!debugger) {
        /* ptrace attaches to the parent, changes the word it calls through, and lets go. */
        me = getppid();
        if (ptrace(PTRACE_ATTACH, me, NULL, NULL)) _exit(1);
        waitpid(me, &status, 0);
        long done = ptrace(PTRACE_POKEDATA, me, &call, real);
        ptrace(PTRACE_DETACH, me, NULL, NULL);
        _exit(done != 0);
    }
    while (waitpid(debugger, &status, 0) < 0) {}
    if (!WIFEXITED(status) || WEXITSTATUS(status)) { printf("untraceable\n"); exit(0); }
    return call(&pointer, bytes);
}

static void scribble(unsigned long seed, size_t bytes)
{
    CUdeviceptr pointer;
    char line[512], rights[8];
    unsigned long from = 0, to = 0;
    int error = start();
    if (!error) error = cuMemAlloc_v2(&pointer, bytes);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:stint-account") && sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[1] == 'w') break;
        else from = 0;
    fclose(maps);
    printf("%d %lu\n", error, to - from);
    fflush(stdout);
    while (from && getchar() != EOF) {
        for (int i = 0; i < 2000; i++) {
            seed = seed * 6364136223846793005ul + 1442695040888963407ul;
            /* Every other time where the sums are: in the first page. */
            uint64_t *word = (uint64_t *)(from + (seed >> 20) % (i % 2 ? 4096 : to - from) / 8 * 8);
            *(volatile uint64_t *)word = i % 3 ? seed : i % 2 ? 0 : ~0ul;
        }
        for (int i = 0; i < 5; i++) error = cuMemAlloc_v2(&pointer, bytes);
        printf("%d\n", error);
        fflush(stdout);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    size_t bytes = strtoull(argv[argc - 1], NULL, 10);
    CUdeviceptr pointer;
    if (!strcmp(how, "open")) {
        hold(by_handle(library(argv[2]), bytes));
    } else if (!strcmp(how, "inner")) {
        int error = start();
        hold(error ? error : by_handle(library(argv[2]), bytes));
    } else if (!strcmp(how, "traced")) hold(traced(argv[2], bytes));
    else if (!strcmp(how, "close") || !strcmp(how, "dup")) {
        over_descriptors(how);
        int error = start();
        if (!error) over_descriptors(how);
        hold(error ? error : cuMemAlloc_v2(&pointer, bytes));
    } else if (!strcmp(how, "scribble")) scribble(strtoul(argv[2], NULL, 10), bytes);
    return 64;
}
