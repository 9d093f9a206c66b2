#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds from SIGTERM to SIGKILL, and then until the delegate is abandoned. */
#define GRACE 100
#define LAST_WAIT 200
/* Nanoseconds between two looks at a delegate that is about to end. */
#define PAUSE 2000000
#define ENVIRONMENT_MAX 4096

extern char **environ;

struct running {
    pid_t pid;
    int in;
    int out;
};

int delegate_find(struct slice plugin, char *path, size_t size)
{
    struct stat own, found;
    int known = stat("/proc/self/exe", &own) == 0;
    const char *at = getenv("CNI_PATH");
    while (at && *at) {
        size_t length = strcspn(at, ":");
        if (length > 0 && length + plugin.length + 2 <= size) {
            memcpy(path, at, length);
            path[length] = '/';
            memcpy(path + length + 1, plugin.at, plugin.length);
            path[length + 1 + plugin.length] = 0;
            if (stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, X_OK) == 0 &&
                !(known && own.st_ino == found.st_ino && own.st_dev == found.st_dev))
                return 0;
        }
        at += length;
        at += *at == ':';
    }
    return -1;
}

static int open_pipe(int ends[2], int ours)
{
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    /* Only this program's end: a delegate does not expect EAGAIN from a pipe. */
    return fcntl(ends[ours], F_SETFL, O_NONBLOCK);
}

/* Runs in the child and never returns. Between fork and exec, only system calls are safe. */
static void become(const char *path, char **environment, int in, int out, int quiet, pid_t parent)
{
    char *arguments[] = {(char *)path, 0};
    int nowhere = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : 2;
    /* A runtime that gives up kills this program. That must end the delegate, too, as it would without a gate. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || (nowhere != 2 && dup2(nowhere, 2) < 0))
        _exit(127);
    execve(path, arguments, environment);
    _exit(127);
}

static int is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* This program's environment, with another CNI_COMMAND if one is given. Null if it is too large. */
static char **environment_for(const char *command)
{
    static char *variables[ENVIRONMENT_MAX];
    size_t count = 0;
    if (command)
        variables[count++] = (char *)command;
    for (char **entry = environ; *entry; entry++) {
        if (command && is_variable(*entry, "CNI_COMMAND"))
            continue;
        if (count == ENVIRONMENT_MAX - 1)
            return 0;
        variables[count++] = *entry;
    }
    variables[count] = 0;
    return variables;
}

static int start(struct running *child, const char *path, const char *command)
{
    char **environment = environment_for(command);
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    pid_t parent = getpid();
    if (!environment) {
        errno = E2BIG;
        return -1;
    }
    if (open_pipe(in, 1) == 0 && open_pipe(out, 0) == 0 && (child->pid = fork()) >= 0) {
        if (child->pid == 0)
            become(path, environment, in[0], out[1], command != 0, parent);
        close(in[0]);
        close(out[1]);
        child->in = in[1];
        child->out = out[0];
        return 0;
    }
    int error = errno;
    for (int i = 0; i < 2; i++) {
        if (in[i] >= 0)
            close(in[i]);
        if (out[i] >= 0)
            close(out[i]);
    }
    errno = error;
    return -1;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Waits for the child until the deadline (0: without a limit). Returns whether it has ended; `status` is how. */
static int reap(pid_t pid, long long deadline, int *status)
{
    const struct timespec pause = {.tv_nsec = PAUSE};
    for (;;) {
        pid_t ended = waitpid(pid, status, deadline ? WNOHANG : 0);
        if (ended == pid)
            return 1;
        if (ended < 0 && errno != EINTR)
            return 0;
        if (ended == 0 && left_ms(deadline) == 0)
            return 0;
        if (ended == 0)
            nanosleep(&pause, 0);
    }
}

/* Ends the delegate and its children: first SIGTERM, then SIGKILL. Abandons a delegate that survives both. */
static void end_now(struct running *child)
{
    int status;
    kill(-child->pid, SIGTERM);
    kill(child->pid, SIGTERM);
    if (reap(child->pid, now_ms() + GRACE, &status))
        return;
    kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL);
    reap(child->pid, now_ms() + LAST_WAIT, &status);
}

/* Writes as much of the configuration as the pipe accepts. A delegate may end without reading all of it. */
static void feed(struct running *child, struct slice *conf)
{
    ssize_t count = write(child->in, conf->at, conf->length);
    if (count >= 0) {
        conf->at += count;
        conf->length -= (size_t)count;
    }
    if (conf->length == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        close_end(&child->in);
}

/* Returns -1 if the answer is too long. */
static int collect(struct running *child, struct text *output)
{
    char beyond;
    size_t room = output->size - output->length;
    ssize_t count = room ? read(child->out, output->at + output->length, room) : read(child->out, &beyond, 1);
    if (count > 0 && room == 0)
        return -1;
    if (count > 0)
        output->length += (size_t)count;
    else if (count == 0 || (errno != EAGAIN && errno != EINTR))
        close_end(&child->out);
    return 0;
}

/* One turn of the exchange. Returns 0 to continue, 1 when the delegate has closed its output, -1 with `outcome` set. */
static int turn(struct running *child, struct slice *conf, long long deadline, struct agent *agent,
                struct verdict *verdict, struct text *output, struct outcome *outcome)
{
    struct pollfd polled[] = {
        {.fd = child->out, .events = POLLIN},
        {.fd = child->in, .events = POLLOUT},
        {.fd = agent ? agent->fd : -1, .events = POLLIN},
    };
    int ready = poll(polled, 3, left_ms(deadline));
    /* A delegate that prints continuously is always ready. */
    if (ready == 0 || left_ms(deadline) == 0) {
        outcome->how = TIMED_OUT;
        return -1;
    }
    /* After an interruption, nothing is ready. */
    if (polled[2].revents) {
        agent_heard(agent, verdict);
        if (verdict->kind == DENY) {
            outcome->how = ABORTED;
            return -1;
        }
    }
    if (polled[1].revents)
        feed(child, conf);
    if (polled[0].revents && collect(child, output)) {
        outcome->how = TOO_LONG;
        return -1;
    }
    return child->out < 0;
}

static struct outcome ended_by_itself(int status)
{
    if (WIFSIGNALED(status))
        return (struct outcome){KILLED, WTERMSIG(status)};
    return (struct outcome){EXITED, WEXITSTATUS(status)};
}

struct outcome delegate_run(const char *path, const char *command, struct slice conf, long long deadline,
                            struct agent *agent, struct verdict *verdict, struct text *output)
{
    struct running child;
    struct outcome outcome = {.how = NOT_RUN};
    int status = 0, done = 0;
    text_clear(output);
    /* poll(2) does not report a frame that arrived together with the first answer. */
    if (agent && agent->length > 0)
        agent_heard(agent, verdict);
    if (agent && verdict->kind == DENY)
        return (struct outcome){.how = ABORTED};
    if (start(&child, path, command)) {
        outcome.status = errno;
        return outcome;
    }
    while (!done)
        done = turn(&child, &conf, deadline, agent, verdict, output, &outcome);
    close_end(&child.in);
    close_end(&child.out);
    if (done > 0 && reap(child.pid, deadline, &status))
        return ended_by_itself(status);
    if (done > 0)
        outcome.how = TIMED_OUT;
    end_now(&child);
    return outcome;
}
