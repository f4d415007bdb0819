/* Calls driver functions with NULL where they want a pointer. Reads `symbol arguments pointers null` lines: how many
 * arguments it takes, which are pointers (a bit each), and which of these are NULL this time; every other pointer leads to
 * zeros, every number is 0. Each call happens in a process of its own, which has a context; prints the error, or the
 * signal. */
#include "driver.h"
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 12 };
static char zeros[MOST][8192];

typedef int function(long, long, long, long, long, long, long, long, long, long, long, long);

int main(void)
{
    char symbol[128];
    int arguments;
    unsigned pointers, null;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (scanf("%127s %d %u %u", symbol, &arguments, &pointers, &null) == 4) {
        int status;
        pid_t child = fork();
        if (!child) {
            CUcontext context;
            long a[MOST] = { 0 };
            function *called = (function *)dlsym(driver, symbol);
            alarm(30);
            for (int i = 0; i < arguments; i++)
                if ((pointers >> i & 1) && !(null >> i & 1)) a[i] = (long)zeros[i];
            if (!called) _exit(251);
            if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) _exit(250);
            int error = called(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
            printf("%s %u -> %d\n", symbol, null, error);
            fflush(stdout);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) printf("%s %u -> signal %d\n", symbol, null, WTERMSIG(status));
        else if (WEXITSTATUS(status)) printf("%s %u -> could not be called: %d\n", symbol, null, WEXITSTATUS(status));
    }
    return 0;
}
