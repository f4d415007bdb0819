/* Asks NVML for all that a tenant is to see its own part of, and for what is everybody's: a name, a code, a number. */
#include <dlfcn.h>
#include <stdio.h>

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } MemoryV2;

int main(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
    static char text[96], room[1 << 16];
    unsigned count = 0;
    Memory memory = { 0 };
    MemoryV2 second = { .version = sizeof second | 2 << 24 };
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
#define CALL(name, ...) ((int (*)())dlsym(library, #name))(__VA_ARGS__)
    if (CALL(nvmlInit_v2) || CALL(nvmlDeviceGetHandleByIndex_v2, 0u, &device)) return 2;
    int error = CALL(nvmlDeviceGetMemoryInfo, device, &memory);
    printf("memory=%d %llu\n", error, memory.total);
    error = CALL(nvmlDeviceGetMemoryInfo_v2, device, &second);
    printf("memory_v2=%d %llu\n", error, second.total);
    count = 100;
    error = CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, room);
    printf("compute=%d %u\n", error, error ? 0 : count);
    count = 100;
    error = CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, device, &count, room);
    printf("graphics=%d %u\n", error, error ? 0 : count);
    printf("name=%d %s\n", CALL(nvmlDeviceGetName, device, text, (unsigned)sizeof text), text);
    printf("nowhere=%d 0\n", CALL(nvmlDeviceGetMemoryInfo, NULL, &memory));
    return 0;
}
