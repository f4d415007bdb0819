/* A 32-bit driver that answers something no 64-bit one would. */
unsigned cuInit(unsigned flags)
{
    return 40 + flags;
}
