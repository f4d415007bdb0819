/* Starts further processes in one of the ways programs do; each child allocates, the parent reports.
 *
 *   processes prefork N BYTES       the parent never touches CUDA; N children each init, allocate, free
 *   processes after-init            child of a process that has called cuInit: prints cuInit and cuMemAlloc errors in the child
 *   processes fork-exec|vfork-exec|spawn BYTES   the child runs this program as `leaf`
 *   processes exec-chain N BYTES    the process replaces itself N times, allocating each time
 *   processes leaf BYTES            init, allocate, print error and open descriptors that name a memfd or socket
 *   processes hold BYTES            init, allocate, print, wait for the end of stdin */
#include "driver.h"
#include <dirent.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int start(void)
{
    CUcontext context;
    int error = cuInit(0);
    if (!error) error = cuDevicePrimaryCtxRetain(&context, 0);
    return error ? error : cuCtxSetCurrent(context);
}

static int allocate(size_t bytes)
{
    CUdeviceptr pointer;
    int error = start();
    return error ? error : cuMemAlloc_v2(&pointer, bytes);
}

static int descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[64], target[256] = { 0 };
        snprintf(path, sizeof path, "/proc/self/fd/%.20s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) > 0 && (strstr(target, "memfd:") || strstr(target, "socket:"))) count++;
    }
    closedir(directory);
    return count;
}

/* Waits for one child; its exit code, or minus the signal. */
static int reap(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child) return -999;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const char *bytes = argv[argc - 1];
    char *leaf[] = { argv[0], "leaf", (char *)bytes, NULL };
    setvbuf(stdout, NULL, _IOLBF, 0);

    if (!strcmp(how, "prefork")) {
        int count = atoi(argv[2]), good = 0;
        pid_t children[1024];
        for (int i = 0; i < count; i++)
            if (!(children[i] = fork())) _exit(allocate(strtoull(bytes, NULL, 10)));
        for (int i = 0; i < count; i++) good += reap(children[i]) == 0;
        printf("good=%d\n", good);
    } else if (!strcmp(how, "after-init")) {
        int error = start();
        printf("parent=%d\n", error);
        pid_t child = fork();
        if (!child) {
            CUdeviceptr pointer;
            int count = 0;
            printf("child_init=%d\n", cuInit(0));
            printf("child_count=%d\n", cuDeviceGetCount(&count));
            printf("child_alloc=%d\n", cuMemAlloc_v2(&pointer, 1 << 20));
            fflush(stdout);
            _exit(0);
        }
        printf("child_end=%d\n", reap(child));
        CUdeviceptr pointer;
        printf("parent_alloc=%d\n", cuMemAlloc_v2(&pointer, 1 << 20));
    } else if (!strcmp(how, "fork-exec") || !strcmp(how, "vfork-exec") || !strcmp(how, "spawn")) {
        printf("parent=%d\n", start());
        pid_t child = 0;
        if (!strcmp(how, "spawn")) posix_spawn(&child, argv[0], NULL, NULL, leaf, environ);
        else {
            child = *how == 'f' ? fork() : vfork();
            if (!child) { execv(argv[0], leaf); _exit(127); }
        }
        printf("child_end=%d\n", reap(child));
        CUdeviceptr pointer;
        printf("parent_alloc=%d\n", cuMemAlloc_v2(&pointer, 1 << 20));
    } else if (!strcmp(how, "exec-chain")) {
        int left = atoi(argv[2]);
        printf("alloc=%d\n", allocate(strtoull(bytes, NULL, 10)));
        if (!left) return 0;
        char next[16];
        snprintf(next, sizeof next, "%d", left - 1);
        execl(argv[0], argv[0], "exec-chain", next, bytes, NULL);
        return 127;
    } else if (!strcmp(how, "leaf")) {
        printf("inherited=%d\n", descriptors());
        int error = allocate(strtoull(bytes, NULL, 10));
        printf("leaf=%d\n", error);
        return error;
    } else if (!strcmp(how, "hold")) {
        int error = allocate(strtoull(bytes, NULL, 10));
        printf("%d\n", error);
        while (getchar() != EOF) {}
        return error;
    }
    return 0;
}
