/* Takes device memory without any library of CUDA's: it speaks with the stand-in's socket itself, as a program on a GPU would
 * make the driver's ioctls itself. Linked statically, it has no loader either.  raw SOCKET BYTES, held until stdin ends. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct { char magic[8]; uint32_t version, role, share, zero; } hello = { "stintsim", 2, 0, 100, 0 };
    struct { uint32_t kind, device; uint64_t bytes; } charge = { 1, 0, argc > 2 ? strtoull(argv[2], NULL, 10) : 0 };
    struct { uint32_t status, zero; uint64_t value; } reply = { 0 };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char welcome[64];
    int node = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (argc < 3) return 64;
    memcpy(hello.magic, "stintsim", 8);
    strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    if (connect(node, (struct sockaddr *)&address, sizeof address)) { perror(argv[1]); return 69; }
    if (send(node, &hello, sizeof hello, 0) < 0 || recv(node, welcome, sizeof welcome, 0) < 0) { perror("hello"); return 70; }
    if (send(node, &charge, sizeof charge, 0) < 0 || recv(node, &reply, sizeof reply, 0) < 0) { perror("charge"); return 70; }
    printf("%u\n", reply.status);
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
