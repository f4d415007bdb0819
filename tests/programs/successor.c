/* Runs a command as the process with number PID, as soon as nobody has it: what a busy machine does by chance.
 *   successor PID COMMAND [ARGUMENT…]
 * Ends with the command's exit code; with 77 where the kernel does not let us choose. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    pid_t number;
    int status;
    if (argc < 3) return 64;
    number = atoi(argv[1]);
    struct clone_args arguments = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1 };
    long child;
    while ((child = syscall(SYS_clone3, &arguments, sizeof arguments)) < 0 && errno == EEXIST) usleep(1000);
    if (child < 0) { perror("clone3"); return errno == EPERM ? 77 : 1; }
    if (!child) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (waitpid(number, &status, 0) != number) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
