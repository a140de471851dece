/* Makes a program see a time that is CLOCK_AHEAD_SECONDS ahead (LD_PRELOAD). */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    long outcome = syscall(SYS_clock_gettime, clock, time);
    const char *ahead = getenv("CLOCK_AHEAD_SECONDS");
    if (outcome == 0 && clock == CLOCK_REALTIME && ahead) time->tv_sec += atol(ahead);
    return (int)outcome;
}
