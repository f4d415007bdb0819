/* A foreign preload of the common kind: replaces `puts` and calls the next one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int puts(const char *text)
{
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "puts");
    next("foreign puts");
    return next(text);
}
