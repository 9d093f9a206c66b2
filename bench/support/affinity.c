/*
 * The least work that sets the CPUs of every thread of a process: read /proc, and for each thread call
 * sched_getaffinity, sched_setaffinity, and sched_getaffinity to read back the result.
 *
 * Usage: affinity <pid> <rounds> [cpu]. The rounds alternate between the first CPU of the program's own set and all of
 * it. With a CPU, the program runs only there: a thread's runqueue belongs to a CPU, and its lock costs several times as
 * much from another one. Prints the microseconds of each round, one per line.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static int apply(const char *directory, const cpu_set_t *goal)
{
    DIR *tasks = opendir(directory);
    int moved = 0;
    if (!tasks)
        return -1;
    for (struct dirent *entry; (entry = readdir(tasks));) {
        int tid = atoi(entry->d_name);
        cpu_set_t mask;
        if (tid == 0 || sched_getaffinity(tid, sizeof mask, &mask) || CPU_EQUAL(&mask, goal))
            continue;
        if (sched_setaffinity(tid, sizeof *goal, goal) == 0 && sched_getaffinity(tid, sizeof mask, &mask) == 0)
            moved++;
    }
    closedir(tasks);
    return moved;
}

int main(int argc, char **argv)
{
    char directory[64];
    cpu_set_t all, one, own;
    if (argc != 3 && argc != 4)
        return 2;
    snprintf(directory, sizeof directory, "/proc/%d/task", atoi(argv[1]));
    if (sched_getaffinity(0, sizeof all, &all))
        return 1;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
            break;
        }
    if (argc == 4) {
        CPU_ZERO(&own);
        CPU_SET(atoi(argv[3]), &own);
        if (sched_setaffinity(0, sizeof own, &own))
            return 1;
    }
    for (int round = 0; round < atoi(argv[2]); round++) {
        double begun = microseconds();
        int moved = apply(directory, round % 2 ? &all : &one);
        double ended = microseconds();
        if (moved < 0)
            return 1;
        printf("%.3f\n", ended - begun);
    }
    return 0;
}
