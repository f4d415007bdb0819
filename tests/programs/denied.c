/* Runs a program that the kernel denies something: denied memfd|random|account LENGTH PROGRAM ARGUMENTS…
 * `account` denies every shared mapping of LENGTH bytes, `memfd` and `random` the system calls memfd_create and getrandom. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ELSE(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define DENY BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
    if (argc < 4) return 64;
    unsigned length = strtoul(argv[2], NULL, 10);
    struct sock_filter one[] = { WORD(nr), ELSE(*argv[1] == 'm' ? SYS_memfd_create : SYS_getrandom, 1), DENY, ALLOW };
    struct sock_filter mapping[] = {
        WORD(nr), ELSE(SYS_mmap, 5), WORD(args[1]), ELSE(length, 3),
        WORD(args[3]), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1 /* MAP_SHARED */, 0, 1), DENY, ALLOW,
    };
    struct sock_fprog filter = { sizeof one / sizeof *one, one };
    if (*argv[1] == 'a') filter = (struct sock_fprog){ sizeof mapping / sizeof *mapping, mapping };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) { perror("seccomp"); return 70; }
    execvp(argv[3], argv + 3);
    return 127;
}
