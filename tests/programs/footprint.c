/* Says what a process looks like from inside before and after it used the driver: signals, umask, environment, threads,
 * descriptors, working directory, what is blocked, what is mapped executable and writable at once. */
#include "driver.h"
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static int entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count;
}

static void look(const char *when)
{
    unsigned long hash = 5381;
    char line[512], directory[4096] = { 0 };
    int handled = 0, count = 0, both = 0;
    sigset_t blocked;
    for (int signal = 1; signal < 65; signal++) {
        struct sigaction action;
        if (!sigaction(signal, NULL, &action) && action.sa_handler != SIG_DFL) handled++;
    }
    for (char **variable = environ; *variable; variable++, count++)
        if (strncmp(*variable, "LD_PRELOAD=", 11))
            for (char *c = *variable; *c; c++) hash = hash * 33 + (unsigned char)*c;
    mode_t mask = umask(0);
    umask(mask);
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) both += strstr(line, "rwxp") != NULL;
    fclose(maps);
    if (!getcwd(directory, sizeof directory)) return;
    printf("%s: handlers %d, environment %d %lx, umask %o, threads %d, descriptors %d, blocked %d, directory %s, rwx %d\n", when, handled,
           count, hash, mask, entries("/proc/self/task"), entries("/proc/self/fd"), sigismember(&blocked, SIGTERM), directory, both);
}

int main(void)
{
    CUcontext context;
    CUdeviceptr pointer;
    look("before");
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    if (cuMemAlloc_v2(&pointer, 1 << 20) || cuMemFree_v2(pointer)) return 1;
    look("after");
    return 0;
}
