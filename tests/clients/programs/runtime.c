/* The clients' protocol in C over the runtime API, for gcc with NVIDIA's headers and the stand-in's libcudart. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOW(call) printf("%s -> %s\n", #call, cudaGetErrorName(call))

static void below(void)
{
    int version = 0, count = 0;
    void *a = NULL, *b = NULL, *pinned = NULL;
    char there[64] = "hello from host", back[64] = { 0 };
    struct cudaDeviceProp properties;
    struct cudaPointerAttributes attributes;
    cudaStream_t stream;
    cudaEvent_t start, end;
    float milliseconds = -1;
    SHOW(cudaRuntimeGetVersion(&version));
    printf("%d\n", version);
    SHOW(cudaGetDeviceCount(&count));
    SHOW(cudaGetDeviceProperties(&properties, 0));
    printf("%s %d.%d\n", properties.name, properties.major, properties.minor);
    SHOW(cudaMalloc(&a, 1 << 20));
    SHOW(cudaMemcpy(a, there, 64, cudaMemcpyHostToDevice));
    SHOW(cudaStreamCreate(&stream));
    SHOW(cudaEventCreate(&start));
    SHOW(cudaEventCreate(&end));
    SHOW(cudaEventRecord(start, stream));
    SHOW(cudaMallocAsync(&b, 4096, stream));
    SHOW(cudaMemcpyAsync(b, a, 64, cudaMemcpyDeviceToDevice, stream));
    SHOW(cudaMemsetAsync((char *)b + 1, 'E', 1, stream));
    SHOW(cudaEventRecord(end, stream));
    SHOW(cudaStreamSynchronize(stream));
    SHOW(cudaEventElapsedTime(&milliseconds, start, end));
    SHOW(cudaMemcpy(back, b, 64, cudaMemcpyDeviceToHost));
    printf("'%s' %d\n", back, milliseconds >= 0);
    SHOW(cudaPointerGetAttributes(&attributes, a));
    printf("%d %d\n", attributes.type, attributes.device);
    SHOW(cudaFreeAsync(b, stream));
    SHOW(cudaHostAlloc(&pinned, 4096, 0));
    SHOW(cudaFreeHost(pinned));
    SHOW(cudaFree(a));
    SHOW(cudaFree((void *)4096));
    SHOW(cudaGetLastError());
    SHOW(cudaDeviceReset());
}

int main(int argc, char **argv)
{
    size_t free_bytes = 0, total = 0;
    void *pointer;
    int error = 0, granted = 0;
    if (argc > 1 && !strcmp(argv[1], "below")) {
        below();
        return 0;
    }
    if (argc < 4) return 64;
    cudaFree(NULL);
    cudaMemGetInfo(&free_bytes, &total);
    while (granted < atoi(argv[3]) && !error) {
        error = cudaMalloc(&pointer, strtoull(argv[2], NULL, 10) << 20);
        granted += !error;
    }
    printf("free=%zu\ntotal=%zu\ngranted=%d\nerror=%d\n", free_bytes, total, granted, error);
    return 0;
}
