/*
 * The virtual CPUs of a guest that polls: a thread on each of the given CPUs reads the clock without pause and keeps
 * every gap of a microsecond and more between two readings, that is, every time that something else had its CPU.
 *
 * Usage: victim <seconds> <cpu>... Prints `ready`, starts on the first byte of its standard input, then prints a line of
 * JSON for each CPU: the nanoseconds that it ran, those of them that it waited for its CPU by the kernel's count
 * (schedstat), and the gaps in nanoseconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_GAPS (1 << 20)
#define LEAST_GAP 1000

struct victim {
    int cpu;
    double seconds;
    pthread_t thread;
    long long nanos, waited;
    unsigned *gaps;
    int count;
};

static pthread_barrier_t begin;

static long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

/* Nanoseconds that this thread was runnable and had no CPU. */
static long long waiting(void)
{
    char path[64];
    long long ran, waited = -1;
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
    file = fopen(path, "r");
    if (!file || fscanf(file, "%lld %lld", &ran, &waited) != 2)
        waited = -1;
    if (file)
        fclose(file);
    return waited;
}

static void *run(void *argument)
{
    struct victim *victim = argument;
    cpu_set_t mask;
    long long first, last, end, waited;
    CPU_ZERO(&mask);
    CPU_SET(victim->cpu, &mask);
    if (sched_setaffinity(0, sizeof mask, &mask)) {
        perror("sched_setaffinity");
        exit(1);
    }
    pthread_barrier_wait(&begin);
    waited = waiting();
    first = last = now();
    end = first + (long long)(victim->seconds * 1e9);
    while (last < end) {
        long long at = now();
        if (at - last >= LEAST_GAP && victim->count < MOST_GAPS)
            victim->gaps[victim->count++] = at - last;
        last = at;
    }
    victim->nanos = last - first;
    victim->waited = waiting() - waited;
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc - 2;
    struct victim *victims = calloc(count > 0 ? count : 1, sizeof *victims);
    if (count < 1) {
        fputs("Usage: victim <seconds> <cpu>...\n", stderr);
        return 2;
    }
    pthread_barrier_init(&begin, NULL, count + 1);
    for (int i = 0; i < count; i++) {
        victims[i].seconds = atof(argv[1]);
        victims[i].cpu = atoi(argv[i + 2]);
        victims[i].gaps = malloc(MOST_GAPS * sizeof(unsigned));
        /* No page fault while it is measured. */
        memset(victims[i].gaps, 0, MOST_GAPS * sizeof(unsigned));
        pthread_create(&victims[i].thread, NULL, run, &victims[i]);
    }
    puts("ready");
    fflush(stdout);
    getchar();
    pthread_barrier_wait(&begin);
    for (int i = 0; i < count; i++) {
        pthread_join(victims[i].thread, NULL);
        printf("{\"nanos\":%lld,\"waited\":%lld,\"gaps\":[", victims[i].nanos, victims[i].waited);
        for (int j = 0; j < victims[i].count; j++)
            printf("%s%u", j ? "," : "", victims[i].gaps[j]);
        puts("]}");
    }
    return 0;
}
