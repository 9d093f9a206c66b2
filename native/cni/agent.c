#include "gate.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum frame { FRAME_PARTIAL, FRAME_BAD, FRAME_WAIT, FRAME_VERDICT };

extern char **environ;

void agent_close(struct agent *agent)
{
    if (agent->fd >= 0)
        close(agent->fd);
    agent->fd = -1;
}

static int open_socket(struct agent *agent)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _Static_assert(sizeof address.sun_path == RUN_PATH_MAX, "each path fits");
    run_path(address.sun_path, "gate.sock");
    agent->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* On a unix socket, connect succeeds or fails at once: EAGAIN means that the agent's queue is full. */
    if (agent->fd >= 0 && connect(agent->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return 0;
    agent_close(agent);
    return -1;
}

static int await(int fd, short events, long long deadline)
{
    struct pollfd polled = {.fd = fd, .events = events};
    int ready;
    do
        ready = poll(&polled, 1, left_ms(deadline));
    while (ready < 0 && errno == EINTR);
    return ready > 0 ? 0 : -1;
}

static int send_all(int fd, struct slice bytes, long long deadline)
{
    for (size_t sent = 0; sent < bytes.length;) {
        ssize_t count = send(fd, bytes.at + sent, bytes.length - sent, MSG_NOSIGNAL);
        if (count >= 0)
            sent += (size_t)count;
        else if (errno != EINTR && (errno != EAGAIN || await(fd, POLLOUT, deadline)))
            return -1;
    }
    return 0;
}

static int is_cni_variable(const char *entry)
{
    return strncmp(entry, "CNI_", 4) == 0;
}

static int send_question(const struct agent *agent, const struct call *call, long long deadline)
{
    static char buffer[16384];
    struct text head = TEXT(buffer);
    size_t environment = 0;
    for (char **entry = environ; *entry; entry++)
        if (is_cni_variable(*entry))
            environment += strlen(*entry) + 1;
    text_string(&head, "plumbline-gate/1 ");
    text_string(&head, VERBS[call->verb]);
    text_string(&head, " ");
    text_number(&head, environment);
    text_string(&head, " ");
    text_number(&head, call->conf.length);
    text_string(&head, "\n");
    for (char **entry = environ; *entry; entry++)
        if (is_cni_variable(*entry))
            text_bytes(&head, (struct slice){*entry, strlen(*entry) + 1});
    /* No runtime sets more variables than fit. The state file decides instead. */
    if (head.overflow)
        return -1;
    if (send_all(agent->fd, (struct slice){head.at, head.length}, deadline))
        return -1;
    return send_all(agent->fd, call->conf, deadline);
}

/* If there is no room, recv(2) returns 0, as at the end of the connection. */
static int read_more(struct agent *agent)
{
    ssize_t count;
    do
        count = recv(agent->fd, agent->held + agent->length, sizeof agent->held - agent->length, 0);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno == EAGAIN)
        return 0;
    if (count <= 0)
        return -1;
    agent->length += (size_t)count;
    return 0;
}

static void drop(struct agent *agent, size_t count)
{
    agent->length -= count;
    memmove(agent->held, agent->held + count, agent->length);
}

/*
 * Reads digits and the byte that must follow them, in a line that is complete. Returns the position after it, or 0 if there
 * are none or too many.
 */
static size_t read_number(const struct agent *agent, size_t at, char end, unsigned *number)
{
    size_t start = at;
    *number = 0;
    for (; agent->held[at] >= '0' && agent->held[at] <= '9' && at - start < 6; at++)
        *number = *number * 10 + (unsigned)(agent->held[at] - '0');
    return at > start && agent->held[at] == end ? at + 1 : 0;
}

/* Removes one frame from the front of the received bytes. */
static enum frame take_frame(struct agent *agent, struct verdict *verdict)
{
    const char *newline = memchr(agent->held, '\n', agent->length);
    if (!newline)
        return agent->length > 64 ? FRAME_BAD : FRAME_PARTIAL;
    struct slice line = {agent->held, (size_t)(newline - agent->held)};
    if (slice_is(line, "allow") || slice_is(line, "wait")) {
        int allowed = slice_is(line, "allow");
        drop(agent, line.length + 1);
        if (allowed)
            verdict->kind = ALLOW;
        return allowed ? FRAME_VERDICT : FRAME_WAIT;
    }
    unsigned code, bytes;
    if (memcmp(agent->held, "deny ", 5) != 0)
        return FRAME_BAD;
    size_t at = read_number(agent, 5, ' ', &code);
    if (at == 0 || (at = read_number(agent, at, '\n', &bytes)) == 0 || bytes > MESSAGE_MAX)
        return FRAME_BAD;
    if (agent->length - at < bytes)
        return FRAME_PARTIAL;
    verdict->kind = DENY;
    verdict->code = code;
    verdict->length = bytes;
    memcpy(verdict->bytes, agent->held + at, bytes);
    drop(agent, at + bytes);
    return FRAME_VERDICT;
}

/* `last`: the end of all waiting, however often the agent requests more time. */
static void await_verdict(struct agent *agent, long long deadline, long long last, struct verdict *verdict)
{
    /* Check in each turn: poll(2) does not report a timeout while there is something to read. */
    while (left_ms(deadline) > 0) {
        enum frame frame = take_frame(agent, verdict);
        if (frame == FRAME_VERDICT || frame == FRAME_BAD)
            return;
        if (frame == FRAME_WAIT)
            deadline = last;
        else if (await(agent->fd, POLLIN, deadline) || read_more(agent))
            return;
    }
}

void agent_ask(struct agent *agent, const struct call *call, int first_ms, int whole_ms, struct verdict *verdict)
{
    long long start = now_ms(), deadline = start + first_ms;
    verdict->kind = NO_VERDICT;
    agent->length = 0;
    if (open_socket(agent))
        return;
    if (send_question(agent, call, deadline) == 0)
        await_verdict(agent, deadline, start + whole_ms, verdict);
    if (verdict->kind != ALLOW)
        agent_close(agent);
}

void agent_heard(struct agent *agent, struct verdict *verdict)
{
    verdict->kind = NO_VERDICT;
    int ended = read_more(agent);
    enum frame frame;
    do
        frame = take_frame(agent, verdict);
    while (frame == FRAME_WAIT || (frame == FRAME_VERDICT && verdict->kind == ALLOW));
    if (frame == FRAME_VERDICT)
        return;
    /* Without the agent the delegate continues as it would without a gate. */
    if (ended || frame == FRAME_BAD)
        agent_close(agent);
    verdict->kind = NO_VERDICT;
}
