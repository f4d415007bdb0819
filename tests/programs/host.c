/* Loads a plugin that is bound to itself first, and lets it allocate while another thread launches. */
#include "driver.h"
#include <dlfcn.h>
#include <pthread.h>

#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
FUNCTIONS(POINTER)

static CUcontext context;
static int failed;

static void *launch(void *unused)
{
    static const char kernel[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry sim_spin_us_10(.param .u64 p){ret;}\n";
    CUmodule module;
    CUfunction function;
    CUdeviceptr argument = 0;
    void *parameters[] = { &argument };
    failed = p_cuCtxSetCurrent(context);
    if (!failed) failed = p_cuModuleLoadData(&module, kernel);
    if (!failed) failed = p_cuModuleGetFunction(&function, module, "sim_spin_us_10");
    for (int i = 0; !failed && i < 2000; i++) failed = p_cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver || argc < 2) return 1;
#define LOOK_UP(name, arguments) *(void **)&p_##name = dlsym(driver, #name);
    FUNCTIONS(LOOK_UP)
    if (p_cuInit(0) || p_cuDevicePrimaryCtxRetain(&context, 0) || p_cuCtxSetCurrent(context)) return 1;
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    int (*allocate)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_allocate") : NULL;
    if (!allocate) { printf("plugin=%s\n", dlerror()); return 1; }
    pthread_create(&thread, NULL, launch, NULL);
    printf("plugin=%d\n", allocate());
    pthread_join(thread, NULL);
    printf("launches=%d\n", failed);
    return 0;
}
