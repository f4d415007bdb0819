/* A 32-bit program linked with a 32-bit driver; needs no C library. Its exit code is what the driver answered. */
unsigned cuInit(unsigned flags);

void _start(void)
{
    unsigned answer = cuInit(0);
    __asm__ volatile("int $0x80" : : "a"(1), "b"(answer));
    __builtin_unreachable();
}
