#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
