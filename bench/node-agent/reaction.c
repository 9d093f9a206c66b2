/*
 * The least work that keeps two daemons off owned CPUs: wait for the rename of cpu_manager_state, read its
 * defaultCpuSet, and set it for every thread of both, with the agent's three calls for each thread.
 *
 * Usage: reaction <kubelet directory> <pid> <pid>. Prints `ready`, then the nanoseconds of the monotonic clock at the
 * end of each reaction, one per line.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

static int parse_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (*text >= '0' && *text <= '9') {
        char *end;
        long first = strtol(text, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last; cpu++)
            CPU_SET(cpu, set);
        text = *end == ',' ? end + 1 : end;
    }
    return CPU_COUNT(set) > 0;
}

static int read_goal(const char *file, cpu_set_t *goal)
{
    static char text[65536];
    static const char key[] = "\"defaultCpuSet\":\"";
    char *found;
    int fd = open(file, O_RDONLY);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (size < 0)
        return 0;
    text[size] = 0;
    found = strstr(text, key);
    return found && parse_list(found + sizeof key - 1, goal);
}

static void apply(const char *pid, const cpu_set_t *goal)
{
    char directory[64];
    DIR *tasks;
    snprintf(directory, sizeof directory, "/proc/%s/task", pid);
    tasks = opendir(directory);
    if (!tasks)
        return;
    for (struct dirent *entry; (entry = readdir(tasks));) {
        int tid = atoi(entry->d_name);
        cpu_set_t mask;
        if (tid == 0 || sched_getaffinity(tid, sizeof mask, &mask) || CPU_EQUAL(&mask, goal))
            continue;
        sched_setaffinity(tid, sizeof *goal, goal);
        sched_getaffinity(tid, sizeof mask, &mask);
    }
    closedir(tasks);
}

int main(int argc, char **argv)
{
    char file[4096], events[4096] __attribute__((aligned(8)));
    int watch = inotify_init();
    if (argc != 4 || inotify_add_watch(watch, argv[1], IN_MOVED_TO) < 0)
        return 2;
    snprintf(file, sizeof file, "%s/cpu_manager_state", argv[1]);
    puts("ready");
    fflush(stdout);
    for (ssize_t size; (size = read(watch, events, sizeof events)) > 0;) {
        for (char *at = events; at < events + size;) {
            struct inotify_event *event = (struct inotify_event *)at;
            struct timespec now;
            cpu_set_t goal;
            at += sizeof *event + event->len;
            if (strcmp(event->name, "cpu_manager_state") || !read_goal(file, &goal))
                continue;
            apply(argv[2], &goal);
            apply(argv[3], &goal);
            clock_gettime(CLOCK_MONOTONIC, &now);
            printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
            fflush(stdout);
        }
    }
    return 0;
}
