/* A foreign preload that replaces `dlsym` itself, as some profilers do, and counts what passes through it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int count;

int foreign_lookups(void) { return count; }

void *dlsym(void *handle, const char *name)
{
    void *(*next)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (name[0] == 'q') { /* only what the test looks up, whoever else calls */
        count++;
        printf("foreign dlsym %s\n", name);
    }
    return next(handle, name);
}
