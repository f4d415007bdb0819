/* Kills a program at a chosen instruction of libstint.so, or at a chosen system call.
 *
 *   instant list M PROGRAM      runs it one instruction at a time from its Mth mark (`int3`) on; prints `OFFSET TIMES` for each
 *                               instruction of libstint.so it executed, then end=CODE. Other libraries run at full speed.
 *   instant at OFFSET N PROGRAM kills it with SIGKILL before it executes that instruction for the Nth time after the first mark
 *   instant call N PROGRAM      kills it at the Nth stop, before or after a system call, after the first mark
 *
 * Prints `killed`, or end=CODE if the program ended before, or untraceable=ERRNO where nobody may trace. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;
static unsigned long shim[2], program[2];

/* Finds the code of the shim and of the program. */
static void find(const char *path)
{
    char name[64], line[1024], rights[8];
    unsigned long from, to;
    snprintf(name, sizeof name, "/proc/%d/maps", child);
    FILE *maps = fopen(name, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || rights[2] != 'x') continue;
        unsigned long *range = strstr(line, "/libstint.so") ? shim : strstr(line, path) ? program : NULL;
        if (range) { range[0] = from; range[1] = to; }
    }
    if (maps) fclose(maps);
}

static int within(const unsigned long *range, unsigned long address) { return address >= range[0] && address < range[1]; }

/* How often each byte of the shim's code began an instruction. */
static unsigned *executed;

static void report(int end)
{
    for (unsigned long i = 0; executed && i < shim[1] - shim[0]; i++)
        if (executed[i]) printf("%lu %u\n", i, executed[i]);
    printf("end=%d\n", end);
    exit(0);
}

/* Goes on in the given way until the next trap of ours; the program's own signals are passed on. */
static void until_trap(enum __ptrace_request how)
{
    int status, signal = 0;
    for (;;) {
        if (ptrace(how, child, NULL, signal)) { perror("ptrace"); exit(70); }
        if (waitpid(child, &status, 0) != child) { perror("waitpid"); exit(70); }
        if (WIFEXITED(status)) report(WEXITSTATUS(status));
        if (WIFSIGNALED(status)) report(-WTERMSIG(status));
        signal = WSTOPSIG(status) & 0x7f;
        if (signal == SIGTRAP) return;
    }
}

static struct user_regs_struct look(void)
{
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
    return registers;
}

/* Runs to the trap put at `address`, where the stack is above `stack`, and takes the trap away. */
static void run_to(unsigned long address, unsigned long stack)
{
    long before = ptrace(PTRACE_PEEKTEXT, child, address, NULL);
    struct user_regs_struct registers;
    for (;;) {
        ptrace(PTRACE_POKETEXT, child, address, (before & ~0xffL) | 0xcc);
        do { /* past the program's own marks */
            until_trap(PTRACE_CONT);
            registers = look();
        } while (registers.rip != address + 1);
        ptrace(PTRACE_POKETEXT, child, address, before);
        registers.rip = address;
        ptrace(PTRACE_SETREGS, child, NULL, &registers);
        if (registers.rsp > stack) return;
        /* A deeper call from the same place came here first: one step, and again. */
        until_trap(PTRACE_SINGLESTEP);
    }
}

static void list(void)
{
    executed = calloc(shim[1] - shim[0], sizeof *executed);
    for (;;) {
        until_trap(PTRACE_SINGLESTEP);
        struct user_regs_struct registers = look();
        if (!within(shim, registers.rip) && !within(program, registers.rip)) {
            /* Just called something else: the return address is on top of the stack. */
            run_to(ptrace(PTRACE_PEEKDATA, child, registers.rsp, NULL), registers.rsp);
            registers = look();
        }
        if (within(shim, registers.rip)) executed[registers.rip - shim[0]]++;
    }
}

static int die(void)
{
    int status;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("killed\n");
    return 0;
}

int main(int argc, char **argv)
{
    int status, at = argc == 5 && !strcmp(argv[1], "at");
    if (argc != 4 && !at) return 64;
    unsigned long number = strtoul(argv[argc - 2], NULL, 10);
    char **command = argv + argc - 1;
    child = fork();
    if (!child) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) { printf("untraceable=%d\n", errno); fflush(stdout); _exit(0); }
        execv(*command, command);
        _exit(127);
    }
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return 0;
    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
    until_trap(PTRACE_CONT);
    find(*command);
    if (at) {
        unsigned long address = shim[0] + strtoul(argv[2], NULL, 10);
        while (run_to(address, 0), --number) until_trap(PTRACE_SINGLESTEP);
    } else if (!strcmp(argv[1], "call")) {
        while (number--) until_trap(PTRACE_SYSCALL);
    } else {
        while (--number) until_trap(PTRACE_CONT);
        list();
    }
    return die();
}
