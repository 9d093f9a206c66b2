/*
 * Measures calls of a program, from its start to its end, as a container runtime makes them: configuration on standard
 * input, the environment unchanged, the output read completely. Runs two programs in turns, so that load affects both.
 *
 * Usage: calls <rounds> <pid or 0> <configuration> <program> <configuration> <program>. Before each call every thread of
 * that process is set to all CPUs again, which is not measured. Prints microseconds, one call per line.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void spread(const char *pid)
{
    char path[64];
    cpu_set_t all;
    if (strcmp(pid, "0") == 0)
        return;
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *threads = opendir(path);
    if (!threads || sched_getaffinity(0, sizeof all, &all))
        fail(path);
    for (struct dirent *entry; (entry = readdir(threads));)
        if (entry->d_name[0] != '.')
            sched_setaffinity(atoi(entry->d_name), sizeof all, &all);
    closedir(threads);
}

static double call(const char *configuration, const char *program)
{
    char answer[65536];
    int in = open(configuration, O_RDONLY | O_CLOEXEC), out[2], status;
    if (in < 0 || pipe2(out, O_CLOEXEC))
        fail(configuration);
    double begun = microseconds();
    pid_t child = vfork();
    if (child == 0) {
        dup2(in, 0);
        dup2(out[1], 1);
        execl(program, program, (char *)0);
        _exit(127);
    }
    close(out[1]);
    while (read(out[0], answer, sizeof answer) > 0)
        ;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "%s ended with %d: %.200s\n", program, status, answer);
        exit(1);
    }
    double took = microseconds() - begun;
    close(in);
    close(out[0]);
    return took;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    for (int left = atoi(argv[1]); left > 0; left--)
        for (int i = 3; i < 7; i += 2) {
            spread(argv[2]);
            printf("%.1f\n", call(argv[i], argv[i + 1]));
        }
    return 0;
}
