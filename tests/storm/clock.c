/* A clock that is wrong: preloaded into the programs of one node, adds the seconds that stand in the file named by
 * $STORM_CLOCK (eight bytes, a signed integer of nanoseconds) to the time of day. It may change at any moment, and jump
 * back. The monotonic clock, by which programs wait, stays what it is, as on a machine whose date was set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("STORM_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *page = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
        offset = page == MAP_FAILED ? 0 : page;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!real)
        begin();
    int status = real(clock, now);
    if (!status && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t then = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + *offset;
        now->tv_sec = then / 1000000000;
        now->tv_nsec = then % 1000000000;
    }
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec then;
    clock_gettime(CLOCK_REALTIME, &then);
    now->tv_sec = then.tv_sec;
    now->tv_usec = then.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec then;
    clock_gettime(CLOCK_REALTIME, &then);
    if (now)
        *now = then.tv_sec;
    return then.tv_sec;
}
