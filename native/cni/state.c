#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RUN_DIRECTORY "/run/plumbline"
/* The agent writes the state every few seconds, so an older one means that it is gone: a refusal then says so. */
#define STATE_OLD_MS 60000
/* The state ends a day after the agent's last write: no agent is coming back that would lift a refusal. */
#define STATE_END_MS (24 * 60 * 60 * 1000LL)

long long now_ms(void)
{
    struct timespec now;
    /* Cannot fail: the clock exists and the pointer is valid. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int left_ms(long long deadline)
{
    if (deadline == 0)
        return -1;
    long long left = deadline - now_ms();
    return left < 0 ? 0 : (int)left;
}

static int is_trusted(int fd)
{
    struct stat found;
    if (fstat(fd, &found) || !S_ISREG(found.st_mode))
        return 0;
    return (found.st_uid == 0 || found.st_uid == geteuid()) && !(found.st_mode & (S_IWGRP | S_IWOTH));
}

struct slice read_file(const char *path, char *buffer, size_t size)
{
    struct slice content = {buffer, 0};
    /* Without O_NONBLOCK, opening a pipe without a writer would block. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return content;
    for (int trusted = is_trusted(fd); trusted;) {
        ssize_t count = read(fd, buffer + content.length, size - content.length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count > 0)
            content.length += (size_t)count;
        if (count < 0 || content.length == size)
            content.length = 0;
        if (count <= 0 || content.length == 0)
            break;
    }
    close(fd);
    return content;
}

void run_path(char path[RUN_PATH_MAX], const char *name)
{
    const char *directory = getenv("PLUMBLINE_RUN_DIR");
    if (!directory || directory[0] != '/' || strlen(directory) + 1 + strlen(name) >= RUN_PATH_MAX)
        directory = RUN_DIRECTORY;
    strcpy(path, directory);
    strcat(path, "/");
    strcat(path, name);
}

/* An integer of at most fifteen digits; -1 if it is not one. */
static long long number_of(struct slice value)
{
    long long number = 0;
    if (value.length == 0 || value.length > 15)
        return -1;
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return -1;
        number = number * 10 + (value.at[i] - '0');
    }
    return number;
}

static void deny(const struct call *call, struct verdict *verdict, struct slice reason, long long age_ms)
{
    struct text message = TEXT(verdict->bytes);
    text_string(&message, "DPU Not Ready: ");
    text_bytes(&message, reason);
    if (age_ms >= STATE_OLD_MS) {
        text_string(&message, "; the node agent has not answered for ");
        text_number(&message, (unsigned long)(age_ms / 1000));
        text_string(&message, " s");
    }
    verdict->kind = DENY;
    verdict->code = call->verb == STATUS ? CODE_UNAVAILABLE : CODE_LATER;
    verdict->length = message.length;
}

void state_judge(const struct call *call, struct verdict *verdict)
{
    static char buffer[16384];
    enum { DPU, REASON, STATUS_TOO, SCOPE, EXEMPT, AT, COUNT };
    struct json_field field[COUNT] = {
        [DPU] = {.name = "dpu"},
        [REASON] = {.name = "reason"},
        [STATUS_TOO] = {.name = "status"},
        [SCOPE] = {.name = "scope"},
        [EXEMPT] = {.name = "exempt"},
        [AT] = {.name = "at"},
    };
    char path[RUN_PATH_MAX];
    run_path(path, "gate.state");
    struct slice content = read_file(path, buffer, sizeof buffer);
    int readable = json_object(content, field, COUNT) == 0;
    long long at = number_of(field[AT].value);
    verdict->kind = ALLOW;
    long long age_ms = now_ms() - at;
    if (!readable || at < 0 || age_ms < 0 || age_ms >= STATE_END_MS)
        return;
    if (call->verb == STATUS && !slice_is(field[STATUS_TOO].value, "true"))
        return;
    if (call->verb == ADD && json_has_name(field[EXEMPT].value, call_namespace()))
        return;
    if (call->verb == ADD && slice_is(json_plain(field[SCOPE].value), "device") && !call->has_device)
        return;
    if (slice_is(json_plain(field[DPU].value), "not-ready"))
        deny(call, verdict, json_plain(field[REASON].value), age_ms);
}
