/* Asks NVML for the memory of device 0. */
#include <dlfcn.h>
#include <stdio.h>

typedef struct { unsigned long long total, free, used; } memory;

int main(void)
{
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
    if (!nvml) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    int (*init)(void) = (int (*)(void))dlsym(nvml, "nvmlInit_v2");
    int (*by_index)(unsigned, void **) = (int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    int (*ask)(void *, memory *) = (int (*)(void *, memory *))dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    memory seen = {0, 0, 0};
    int error = init();
    if (!error) error = by_index(0, &device);
    if (!error) error = ask(device, &seen);
    printf("error=%d\ntotal=%llu\n", error, seen.total);
    return 0;
}
