#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RUN_DIRECTORY "/run/plumbline"

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
