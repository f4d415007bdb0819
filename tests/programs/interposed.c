/* Calls what the foreign preloads replace, and looks names up in every way that the caller's place matters. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    puts("hello");
    printf("default %d\n", dlsym(RTLD_DEFAULT, "qsort") != NULL);
    printf("next %d\n", dlsym(RTLD_NEXT, "qsort_r") != NULL);
    printf("absent %d\n", dlsym(RTLD_DEFAULT, "q_no_such_function") != NULL);
    const char *why = dlerror();
    printf("dlerror %d\n", why && strstr(why, "q_no_such_function") != NULL);
    printf("versioned %d\n", dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14") != NULL);
    printf("bad version %d\n", dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_0.0") != NULL);
    return 0;
}
