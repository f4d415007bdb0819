/* Many processes initialise CUDA at the same moment: barrier N. One does it alone first; then N more, forked before any CUDA
 * call, wait for the end of a pipe and begin together. Each marks begin and end of its cuInit by getppid, for a trace.
 *   alone_cpu_ns=   CPU time of the one's cuInit        last_ns=   from the release until the last of the N was done
 *   failed=         how many got an error               cores= */
#include "driver.h"
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct report { int error; unsigned long long cpu, end; };

static unsigned long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static struct report initialise(void)
{
    struct report report;
    unsigned long long before = now(CLOCK_PROCESS_CPUTIME_ID);
    syscall(SYS_getppid);
    report.error = cuInit(0);
    syscall(SYS_getppid);
    report.cpu = now(CLOCK_PROCESS_CPUTIME_ID) - before;
    report.end = now(CLOCK_MONOTONIC);
    return report;
}

static void child(int barrier, int answers)
{
    char byte;
    while (read(barrier, &byte, 1) > 0) {}
    struct report report = initialise();
    _exit(write(answers, &report, sizeof report) != sizeof report);
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1, barrier[2], answers[2], failed = 0;
    struct report report;
    cpu_set_t cores;
    for (int round = 0; round < 2; round++) {
        unsigned long long last = 0;
        int children = round ? count : 1;
        if (pipe(barrier) || pipe(answers)) return 70;
        for (int i = 0; i < children; i++)
            if (!fork()) { close(barrier[1]); child(barrier[0], answers[1]); }
        close(barrier[0]);
        unsigned long long released = now(CLOCK_MONOTONIC);
        close(barrier[1]);
        for (int i = 0; i < children; i++) {
            if (read(answers[0], &report, sizeof report) != sizeof report) return 71;
            failed += report.error != 0;
            if (report.end > last) last = report.end;
        }
        while (wait(NULL) > 0) {}
        close(answers[0]);
        close(answers[1]);
        if (!round) printf("alone_cpu_ns=%llu\n", report.cpu);
        else printf("last_ns=%llu\n", last - released);
    }
    sched_getaffinity(0, sizeof cores, &cores);
    printf("failed=%d\ncores=%d\n", failed, CPU_COUNT(&cores));
    return 0;
}
