/* Shares memory with a second process of its own, made before either is initialised: sharing KIND BYTES, KIND one of vmm, pool,
 * ipc. One line of stdin a step, one line of answer: the CUDA errors of both, exporter first.
 *
 *   share    allocates, exports, and the other one imports and reads it
 *   end      the other one lets go, then this one frees */
#include "driver.h"
#include <sys/socket.h>
#include <unistd.h>

typedef struct { char bytes[64]; } Data;

static int device_of(CUcontext *context)
{
    int error = cuInit(0);
    if (!error) error = cuDevicePrimaryCtxRetain(context, 0);
    return error ? error : cuCtxSetCurrent(*context);
}

static void send_all(int to, int fd, Data data)
{
    char space[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec part = { &data, sizeof data };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    if (fd >= 0) {
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    if (sendmsg(to, &message, 0) != sizeof data) exit(97);
}

static int receive(int from, Data *data)
{
    int fd = -1;
    char space[CMSG_SPACE(sizeof fd)];
    struct iovec part = { data, sizeof *data };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space };
    if (recvmsg(from, &message, 0) != sizeof *data) exit(0);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header) memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

static int map(CUmemHandle handle, size_t bytes, CUdeviceptr *pointer)
{
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, 3 };
    int error = cuMemAddressReserve(pointer, bytes, 0, 0, 0);
    if (!error) error = cuMemMap(*pointer, bytes, 0, handle, 0);
    return error ? error : cuMemSetAccess(*pointer, bytes, &access, 1);
}

static void importer(int link, char kind, size_t bytes)
{
    CUcontext context;
    CUmemoryPool pool = NULL;
    CUmemHandle handle = 0;
    CUdeviceptr pointer = 0;
    Data data;
    int error = device_of(&context), value = 0;
    send_all(link, -1, (Data){ { (char)error } });
    for (;;) {
        int fd = receive(link, &data);
        if (fd >= 0 || kind == 'i') {
            if (kind == 'v') {
                error = cuMemImportFromShareableHandle(&handle, (void *)(long)fd, 1);
                if (!error) error = map(handle, bytes, &pointer);
            } else if (kind == 'p') {
                error = cuMemPoolImportFromShareableHandle(&pool, (void *)(long)fd, 1, 0);
                if (!error) error = cuMemPoolImportPointer(&pointer, pool, (CUmemPoolPtrExportData *)&data);
            } else {
                CUipcMemHandle ipc;
                memcpy(&ipc, &data, sizeof ipc);
                error = cuIpcOpenMemHandle_v2(&pointer, ipc, 1);
            }
            if (fd >= 0) close(fd);
            if (!error) error = cuMemcpyDtoH_v2(&value, pointer, sizeof value);
            if (!error && value != 0x05050505) error = 99;
        }
        send_all(link, -1, (Data){ { (char)error } });
        receive(link, &data); /* the end */
        if (kind == 'v') {
            error = cuMemUnmap(pointer, bytes);
            if (!error) error = cuMemAddressFree(pointer, bytes);
            if (!error) error = cuMemRelease(handle);
        } else if (kind == 'p') {
            error = cuMemFree_v2(pointer);
            if (!error) error = cuMemPoolDestroy(pool);
        } else error = cuIpcCloseMemHandle(pointer);
        send_all(link, -1, (Data){ { (char)error } });
    }
}

int main(int argc, char **argv)
{
    CUmemAllocationProp physical = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = 1, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUmemPoolProps in_pool = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = 1, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUcontext context;
    CUmemoryPool pool = NULL;
    CUmemHandle handle = 0;
    CUdeviceptr pointer = 0;
    char line[64], kind = argc > 1 ? argv[1][0] : 0;
    size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    int link[2];
    Data data;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!bytes || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link)) return 64;
    if (!fork()) {
        close(link[0]);
        importer(link[1], kind, bytes);
    }
    close(link[1]);
    int error = device_of(&context);
    receive(link[0], &data);
    while (fgets(line, sizeof line, stdin)) {
        int fd = -1;
        if (line[0] == 's') {
            memset(&data, 0, sizeof data);
            if (kind == 'v') {
                if (!error) error = cuMemCreate(&handle, bytes, &physical, 0);
                if (!error) error = map(handle, bytes, &pointer);
                if (!error) error = cuMemExportToShareableHandle(&fd, handle, 1, 0);
            } else if (kind == 'p') {
                if (!error) error = cuMemPoolCreate(&pool, &in_pool);
                if (!error) error = cuMemAllocFromPoolAsync(&pointer, bytes, pool, NULL);
                if (!error) error = cuMemPoolExportToShareableHandle(&fd, pool, 1, 0);
                if (!error) error = cuMemPoolExportPointer((CUmemPoolPtrExportData *)&data, pointer);
            } else {
                if (!error) error = cuMemAlloc_v2(&pointer, bytes);
                if (!error) error = cuIpcGetMemHandle((CUipcMemHandle *)&data, pointer);
            }
            if (!error) error = cuMemsetD8_v2(pointer, 5, bytes);
            if (!error) error = cuCtxSynchronize();
            send_all(link[0], fd, data);
            if (fd >= 0) close(fd);
            receive(link[0], &data);
        } else {
            send_all(link[0], -1, (Data){ { 0 } });
            receive(link[0], &data);
            if (kind == 'v') {
                if (!error) error = cuMemUnmap(pointer, bytes);
                if (!error) error = cuMemAddressFree(pointer, bytes);
                if (!error) error = cuMemRelease(handle);
            } else if (!error) error = cuMemFree_v2(pointer);
            if (!error && kind == 'p') error = cuMemPoolDestroy(pool);
        }
        printf("%d %d\n", error, data.bytes[0]);
    }
    return error;
}
