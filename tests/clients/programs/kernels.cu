/* The clients' protocol in CUDA C++, for nvcc with a shared runtime: kernels, symbols, launches of three kinds. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define SHOW(call) std::printf("%s -> %s\n", #call, cudaGetErrorName(call))

__device__ int offset = 7;
__constant__ float factors[4];

__global__ void add(int *p, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) p[i] += offset;
}

template <class T> __global__ void scale(T *p, double x, short s) { p[0] = x * s * factors[1]; }

static void below()
{
    int *p = nullptr, value = 9, blocks = 0;
    cudaFuncAttributes attributes;
    SHOW(cudaMalloc(&p, 4096));
    add<<<4, 256>>>(p, 1024);
    SHOW(cudaGetLastError());
    scale<float><<<dim3(2, 2), 32, 128>>>((float *)p, 2.0, 3);
    SHOW(cudaGetLastError());
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaMemcpyToSymbol(offset, &value, sizeof value));
    SHOW(cudaFuncGetAttributes(&attributes, add));
    SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
    void *arguments[] = { &p, &value };
    SHOW(cudaLaunchKernel((void *)add, dim3(1), dim3(64), arguments, 0, 0));
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(1);
    configuration.blockDim = dim3(32);
    SHOW(cudaLaunchKernelEx(&configuration, add, p, 3));
    SHOW(cudaFree(p));
}

int main(int argc, char **argv)
{
    std::size_t free_bytes = 0, total = 0;
    void *pointer;
    int error = 0, granted = 0;
    if (argc > 1 && !std::strcmp(argv[1], "below")) {
        below();
        return 0;
    }
    if (argc < 4) return 64;
    cudaFree(nullptr);
    cudaMemGetInfo(&free_bytes, &total);
    while (granted < std::atoi(argv[3]) && !error) {
        error = cudaMalloc(&pointer, std::strtoull(argv[2], nullptr, 10) << 20);
        granted += !error;
    }
    std::printf("free=%zu\ntotal=%zu\ngranted=%d\nerror=%d\n", free_bytes, total, granted, error);
    return 0;
}
