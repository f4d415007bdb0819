/* Preloaded before the shim: tells which variables the shim reads, by who calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static char *find(const char *name, void *caller)
{
    Dl_info info;
    size_t length = strlen(name);
    if (dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libstint")) {
        char line[256];
        int bytes = snprintf(line, sizeof line, "read %s\n", name);
        if (write(2, line, (size_t)bytes) != bytes) return NULL;
    }
    for (char **variable = environ; variable && *variable; variable++)
        if (!strncmp(*variable, name, length) && (*variable)[length] == '=') return *variable + length + 1;
    return NULL;
}

char *getenv(const char *name) { return find(name, __builtin_return_address(0)); }
char *secure_getenv(const char *name) { return find(name, __builtin_return_address(0)); }
