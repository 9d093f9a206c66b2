/*
 * Feeds random calls to the gate under the address and undefined-behaviour sanitizers. It prints each answer for the
 * caller to judge: a line `<exit status> <bytes>`, the bytes, and a newline.
 *
 * Usage: fuzz-gate <seed> <calls> <directory>. The directory contains the agent's socket, the state file and bin/ with two
 * delegates, the only ones that a call can reach, since names are random. A thread listens as an agent with random answers. The seed alone determines
 * the calls.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gate.h"

#define CONF_MAX 8192

static unsigned long long state;

/* xorshift64*: the same calls for the same seed, on every machine. */
static unsigned random_below(unsigned limit)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)((state * 2685821657736338717ULL) >> 33) % limit;
}

static const char *one_of(const char *const *choices, unsigned count)
{
    return choices[random_below(count)];
}
#define ONE_OF(array) one_of(array, sizeof array / sizeof *array)

static const char *const CONFS[] = {
    "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"plumbline-gate\"}",
    "{\"cniVersion\":\"0.3.1\",\"name\":\"net\",\"type\":\"plumbline-gate\",\"delegate\":{\"type\":\"true\"}}",
    "{\"cniVersion\":\"0.4.0\",\"name\":\"net\",\"type\":\"plumbline-gate\",\"prevResult\":{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\",\"address\":\"10.0.0.2/24\"}]}}",
    "{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"plumbline-gate\",\"delegate\":{\"type\":\"cat\",\"ipam\":{\"type\":\"host-local\",\"ranges\":[[{\"subnet\":\"10.0.0.0/8\"}]]}},\"runtimeConfig\":{\"deviceID\":\"0000:03:00.2\"}}",
    "{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"plumbline-gate\",\"delegate\":{\"type\":\"true\"},\"deviceID\":\"0000:03:00.2\",\"cni.dev/valid-attachments\":[{\"containerID\":\"a\",\"ifname\":\"eth0\"}]}",
    "{\"cniVersion\":\"0.3.1\",\"name\":\"n\\u00e4t\\\\\",\"delegate\":{\"type\":\"nowhere\"},\"x\":[1,-2.5e+3,true,false,null,\"\\\"\"]}",
};
static const char *const TOKENS[] = {"{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "0", "-", "1e9", "null", "true",
                                     "\"type\"", "\"delegate\"", "\"cniVersion\"", "\"1.1.0\"", "\"plumbline-gate\"",
                                     "\"prevResult\"", "\"socket\"", "\"../x\"", "\xff", "\xf0\x9f\x92\xa9", "\n", " "};
static const char *const COMMANDS[] = {"ADD", "ADD", "ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"};
static const char *const ODD_COMMANDS[] = {"add", "\xff\x01\"", "", "ADDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD"};
static const char *const NAMES[] = {"CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH", "CNI_ARGS"};
static const char *const VALUES[] = {"x", "/nowhere:/nor/here", "/", ":::", "K8S_POD_NAMESPACE=kube-system;K8S_POD_UID=1",
                                     "K8S_POD_NAMESPACE=", ";;=;K8S_POD_NAMESPACE", "\xc3\x28", "\"\\\n\x7f", ""};
static const char *const STATES[] = {
    "{\"dpu\":\"not-ready\",\"reason\":\"its lease ran out\",\"status\":true,\"exempt\":[\"kube-system\"],\"at\":1}",
    "{\"dpu\":\"ready\",\"at\":1}",
    "{\"dpu\":\"not-ready\",\"scope\":\"device\",\"at\":1}", "{\"dpu\":3,\"at\":99999999999999999999}", "{", ""};
static const char *const ANSWERS[] = {"wait\nwait\nwait\nallow\nwait\nallow\ndeny 11 2\nno","allow\n", "allow\n", "deny 11 17\nDPU Not Ready: no", "wait\nallow\n",
                                      "wait\ndeny 50 0\n", "allow\ndeny 11 2\nno", "deny 99999999 1\nx", "deny 11 5000\n",
                                      "deny 11 3\nab", "\n\n\n", "deny -1 -1\n", ""};

static size_t put_random_bytes(char *to, size_t most)
{
    size_t length = random_below((unsigned)most);
    for (size_t i = 0; i < length; i++)
        to[i] = (char)random_below(256);
    return length;
}

static size_t put_random_tokens(char *to, size_t most)
{
    size_t length = 0;
    for (unsigned left = random_below(200); left > 0; left--) {
        const char *token = ONE_OF(TOKENS);
        size_t size = strlen(token);
        if (length + size > most)
            break;
        memcpy(to + length, token, size);
        length += size;
    }
    return length;
}

static size_t put_nested(char *to, size_t most)
{
    size_t depth = random_below((unsigned)most / 16), length = 0;
    const char *open = random_below(2) ? "{\"a\":" : "[";
    memcpy(to, "{\"type\":", 8);
    for (length = 8; depth > 0 && length + 8 < most; depth--, length += strlen(open))
        memcpy(to + length, open, strlen(open));
    return length;
}

/* Cuts, repeats and replaces bytes of valid input. */
static size_t mutate(char *bytes, size_t length, size_t most)
{
    for (unsigned left = random_below(5); left > 0 && length > 0; left--) {
        size_t at = random_below((unsigned)length);
        switch (random_below(4)) {
        case 0:
            bytes[at] = (char)random_below(256);
            break;
        case 1:
            length = at;
            break;
        case 2:
            memmove(bytes + at, bytes + at + 1, length - at - 1);
            length--;
            break;
        default:
            if (length * 2 - at > most)
                break;
            memmove(bytes + length, bytes + at, length - at);
            length += length - at;
        }
    }
    return length;
}

static size_t put_conf(char *to)
{
    switch (random_below(8)) {
    case 0:
        return put_random_bytes(to, CONF_MAX);
    case 1:
        return put_random_tokens(to, CONF_MAX);
    case 2:
        return put_nested(to, CONF_MAX);
    default:
        break;
    }
    const char *conf = ONE_OF(CONFS);
    memcpy(to, conf, strlen(conf));
    return random_below(2) ? strlen(conf) : mutate(to, strlen(conf), CONF_MAX);
}

static void set_environment(const char *directory)
{
    char path[512], plugins[512];
    snprintf(plugins, sizeof plugins, "/nowhere:%s/bin", directory);
    clearenv();
    if (random_below(40))
        setenv("CNI_COMMAND", random_below(16) ? ONE_OF(COMMANDS) : ONE_OF(ODD_COMMANDS), 1);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (random_below(24) == 0)
            continue;
        /* Mostly values that a runtime would set, so that the call passes the first checks. */
        setenv(NAMES[i], random_below(6) ? (strcmp(NAMES[i], "CNI_PATH") ? "x" : plugins) : ONE_OF(VALUES), 1);
    }
    /* Mostly the directory with both files; one with the state alone; none; and text that is no directory of the agent. */
    snprintf(path, sizeof path, "%s%s", directory, random_below(3) ? "" : "/alone");
    setenv("PLUMBLINE_RUN_DIR", random_below(8) ? path : ONE_OF(VALUES), 1);
}

static void write_file(const char *directory, const char *name, const char *bytes, size_t length)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, length) < 0)
        exit(3);
    close(fd);
}

static void write_state(const char *directory)
{
    char bytes[4096];
    size_t length = random_below(4) ? 0 : put_random_tokens(bytes, sizeof bytes);
    if (length == 0) {
        const char *content = ONE_OF(STATES);
        length = strlen(content);
        memcpy(bytes, content, length);
    }
    write_file(directory, "gate.state", bytes, length);
    write_file(directory, "alone/gate.state", bytes, length);
}

/* It has its own random sequence, so that only the seed determines the calls. */
static void *be_agent(void *argument)
{
    int server = *(int *)argument;
    unsigned next = 0;
    char heard[4096];
    for (;;) {
        int fd = accept(server, 0, 0);
        const char *answer = ANSWERS[next++ % (sizeof ANSWERS / sizeof *ANSWERS)];
        if (fd < 0)
            continue;
        if (next % 7 && read(fd, heard, sizeof heard) < 0)
            next++;
        if (write(fd, answer, strlen(answer)) < 0)
            next++;
        close(fd);
    }
    return 0;
}

static int listen_at(const char *directory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/gate.sock", directory);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 16))
        exit(3);
    return fd;
}

/* One prints its configuration, the other prints nothing. */
static void place_delegates(const char *directory)
{
    static const char *const PLACES[] = {"/alone", "/bin", "/bin/cat", "/bin/true"};
    char path[512];
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        snprintf(path, sizeof path, "%s%s", directory, PLACES[i]);
        if (i < 2 ? mkdir(path, 0700) : symlink(PLACES[i], path))
            exit(3);
    }
}

int main(int argc, char **argv)
{
    static char conf[CONF_MAX], output[LARGEST];
    static int server;
    pthread_t agent;
    if (argc != 4)
        return 2;
    state = strtoull(argv[1], 0, 10) * 2 + 1;
    signal(SIGPIPE, SIG_IGN);
    place_delegates(argv[3]);
    server = listen_at(argv[3]);
    if (pthread_create(&agent, 0, be_agent, &server))
        return 3;
    for (long left = atol(argv[2]); left > 0; left--) {
        struct text answer = TEXT(output);
        if (left % 16 == 0)
            write_state(argv[3]);
        set_environment(argv[3]);
        size_t length = put_conf(conf);
        /* Allocate the exact size, so that the sanitizer detects a read past the end. */
        char *exact = malloc(length ? length : 1);
        memcpy(exact, conf, length);
        int status = gate_run((struct slice){exact, length}, &answer);
        printf("%d %zu\n", status, answer.length);
        fwrite(answer.at, 1, answer.length, stdout);
        putchar('\n');
        free(exact);
    }
    return fflush(stdout) ? 3 : 0;
}
