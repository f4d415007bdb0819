/* What a program without CUDA learns from the dynamic loader: which object a name comes from, what a failure is called. The
 * names that a preloaded shim must have itself (CUDA's, and dlsym with dlvsym) are not asked for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void show(const char *how, const char *name, void *address)
{
    const char *error = dlerror(), *file = "nowhere";
    Dl_info about;
    if (address && dladdr(address, &about)) {
        file = strrchr(about.dli_fname, '/');
        file = file ? file + 1 : about.dli_fname;
    }
    printf("%s %s: %s, %s\n", how, name, file, error ? error : "no error");
}

int main(void)
{
    static const char *const names[] = { "puts", "malloc", "dlopen", "dlclose", "dladdr", "dlerror", "pthread_create", "cos", "main", "no_such_name" };
    void *self = dlopen(NULL, RTLD_NOW), *math = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        show("default", names[i], dlsym(RTLD_DEFAULT, names[i]));
        show("next", names[i], dlsym(RTLD_NEXT, names[i]));
        show("self", names[i], dlsym(self, names[i]));
        show("math", names[i], dlsym(math, names[i]));
        show("version", names[i], dlvsym(RTLD_DEFAULT, names[i], "GLIBC_2.2.5"));
        show("wrong version", names[i], dlvsym(RTLD_DEFAULT, names[i], "GLIBC_9.9"));
    }
    show("open", "libnever-heard-of.so.9", dlopen("libnever-heard-of.so.9", RTLD_NOW));
    return 0;
}
