/* A loader for HEAD: wrk waits for the body that an answer to HEAD announces and does not have.
 *
 * head_load PORT PATH-PREFIX TOKEN NAMES CONNECTIONS SECONDS
 *
 * One thread, one epoll, kept-alive connections, the next request when the last is answered, as wrk does it.
 * Asks for <prefix>1-<n>, n from 1 to NAMES over and over. Prints the same RESULT line as load.lua.
 * Latencies are counted in buckets of one microsecond, the last holding all above.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 5000000, BUFFER = 16384 };

struct connection {
    int socket;
    size_t filled;
    double asked;
    char buffer[BUFFER + 1];
};

static unsigned buckets[BUCKETS];
static long finished, wrong, broken, counter;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void ask(struct connection *connection, const char *prefix, const char *token, int names)
{
    char request[4096];
    int length = snprintf(request, sizeof request,
                          "HEAD %s1-%ld HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Auth-Token: %s\r\n\r\n",
                          prefix, counter++ * 7 % names + 1, token);
    connection->filled = 0;
    connection->asked = now();
    if (length >= (int)sizeof request || write(connection->socket, request, length) != length)
        broken++;
}

/* Takes what has arrived; whether an answer is complete. */
static int answered(struct connection *connection)
{
    ssize_t count = read(connection->socket, connection->buffer + connection->filled, BUFFER - connection->filled);
    if (count <= 0) {
        if (count < 0 && errno == EAGAIN)
            return 0;
        broken++;
        close(connection->socket);
        return 0;
    }
    connection->filled += count;
    connection->buffer[connection->filled] = 0;
    if (!strstr(connection->buffer, "\r\n\r\n"))
        return 0;
    long taken = now() - connection->asked;
    buckets[taken < BUCKETS ? taken : BUCKETS - 1]++;
    finished++;
    if (strncmp(connection->buffer, "HTTP/1.1 2", 10))
        wrong++;
    return 1;
}

static long percentile(double share)
{
    long seen = 0, wanted = finished * share;
    for (long bucket = 0; bucket < BUCKETS; bucket++)
        if ((seen += buckets[bucket]) > wanted)
            return bucket;
    return BUCKETS;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: %s PORT PATH-PREFIX TOKEN NAMES CONNECTIONS SECONDS\n", argv[0]);
        return 2;
    }
    const char *prefix = argv[2], *token = argv[3];
    int names = atoi(argv[4]), connections = atoi(argv[5]), epoll = epoll_create1(0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct connection *all = calloc(connections, sizeof *all);
    for (int index = 0; index < connections; index++) {
        all[index].socket = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(all[index].socket, (struct sockaddr *)&address, sizeof address)) {
            perror("connect");
            return 1;
        }
        setsockopt(all[index].socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[index]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[index].socket, &event);
    }
    double start = now(), end = start + atof(argv[6]) * 1e6;
    for (int index = 0; index < connections; index++)
        ask(&all[index], prefix, token, names);
    while (now() < end && !broken) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, 100);
        for (int index = 0; index < ready; index++)
            if (answered(events[index].data.ptr))
                ask(events[index].data.ptr, prefix, token, names);
    }
    printf("RESULT {\"requests\": %ld, \"microseconds\": %.0f, \"p50\": %ld, \"p99\": %ld, \"wrong\": %ld, \"broken\": %ld, \"counters\": [%ld]}\n",
           finished, now() - start, percentile(0.50), percentile(0.99), wrong, broken, counter);
    return 0;
}
