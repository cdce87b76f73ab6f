// A store that costs nothing: answers every request on every connection with the same bytes, after the same time.
//
//     responder BYTES DELAY_MICROSECONDS
//
// Prints its port. One thread, epoll, keep-alive; requests without bodies, of which one is under way on a connection.
// It does not look at what is asked but for its end, so that what a loader measures beside it is the loader.

#define _GNU_SOURCE
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

enum { MOST = 65536, EVENTS = 256 };

// Answers that wait for their time, in the order in which they are due: all wait equally long.
struct waiting {
   int socket;
   long long due;
};

static struct waiting queue[MOST];
static unsigned first, last;
static char *answer;
static size_t length;

static void fail(const char *what) {
   perror(what);
   exit(1);
}

static long long nanoseconds(void) {
   struct timespec now;
   clock_gettime(CLOCK_MONOTONIC, &now);
   return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// The next client may get the same number, and must not get what waits for this one.
static void leave(int socket) {
   for (unsigned at = first; at != last; at++) {
      if (queue[at % MOST].socket == socket) {
         queue[at % MOST].socket = -1;
      }
   }
   close(socket);
}

// A client that does not read its answer is closed: none of ours does that.
static void reply(int socket) {
   if (socket >= 0 && send(socket, answer, length, MSG_NOSIGNAL) != (ssize_t)length) {
      leave(socket);
   }
}

static void read_request(int socket, long long delay) {
   char request[8192];
   ssize_t got = recv(socket, request, sizeof request, 0);
   if (got <= 0) {
      if (got == 0 || errno != EAGAIN) {
         leave(socket);
      }
   } else if (got < 4 || memcmp(request + got - 4, "\r\n\r\n", 4) != 0) {
      return; // not at its end: a loader sends heads in one piece
   } else if (delay == 0) {
      reply(socket);
   } else {
      queue[last++ % MOST] = (struct waiting){socket, nanoseconds() + delay};
   }
}

int main(int count, char **arguments) {
   if (count != 3) {
      fprintf(stderr, "responder BYTES DELAY_MICROSECONDS\n");
      return 2;
   }
   size_t bytes = strtoul(arguments[1], NULL, 10);
   long long delay = strtoll(arguments[2], NULL, 10) * 1000;
   answer = malloc(bytes + 256);
   length = sprintf(answer,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nEtag: d41d8cd98f00b204e9800998ecf8427e\r\n"
                    "X-Timestamp: 1700000000.00000\r\nContent-Length: %zu\r\n\r\n", bytes);
   memset(answer + length, 'm', bytes);
   length += bytes;

   int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1;
   struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
   socklen_t size = sizeof address;
   if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 4096) != 0) {
      fail("listen");
   }
   getsockname(listener, (struct sockaddr *)&address, &size);
   printf("%d\n", ntohs(address.sin_port));
   fflush(stdout);

   int poll = epoll_create1(0);
   struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
   epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
   for (;;) {
      struct timespec left = {0}, *until = NULL;
      if (first != last) {
         long long rest = queue[first % MOST].due - nanoseconds();
         left.tv_nsec = rest < 0 ? 0 : rest % 1000000000LL;
         left.tv_sec = rest < 0 ? 0 : rest / 1000000000LL;
         until = &left;
      }
      int ready = epoll_pwait2(poll, events, EVENTS, until, NULL);
      if (ready < 0 && errno != EINTR) {
         fail("epoll_pwait2");
      }
      for (int at = 0; at < ready; at++) {
         if (events[at].data.fd != listener) {
            read_request(events[at].data.fd, delay);
            continue;
         }
         // All that wait: those who were first would be served over and over again meanwhile.
         for (int socket; (socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
            setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
            event = (struct epoll_event){.events = EPOLLIN, .data.fd = socket};
            epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event);
         }
      }
      for (long long now = nanoseconds(); first != last && queue[first % MOST].due <= now; first++) {
         reply(queue[first % MOST].socket);
      }
   }
}
