/*
 * A host with many idle processes, of which the first ones look like QEMU.
 *
 * Usage: processes <guests> <vcpus> <others>. Each guest is a process named qemu-system-x86 with a thread for each vCPU,
 * named as QEMU names them, and four more. Prints the guests' pids and `ready` when all run; all end with its standard
 * input.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#define WORKERS 4

static void *idle(void *name)
{
    if (name)
        prctl(PR_SET_NAME, name);
    for (;;)
        pause();
    return NULL;
}

static void guest(int vcpus, int ready)
{
    pthread_attr_t small;
    prctl(PR_SET_NAME, "qemu-system-x86");
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < vcpus + WORKERS; i++) {
        pthread_t thread;
        char *name = NULL;
        if (i < vcpus && asprintf(&name, "CPU %d/KVM", i) < 0)
            _exit(1);
        if (pthread_create(&thread, &small, idle, name))
            _exit(1);
    }
    if (write(ready, "+", 1) != 1)
        _exit(1);
    idle(NULL);
}

int main(int argc, char **argv)
{
    int pipes[2];
    char buffer[64];
    if (argc != 4 || pipe(pipes))
        return 2;
    setpgid(0, 0);
    int guests = atoi(argv[1]);
    int others = atoi(argv[3]);
    for (int i = 0; i < guests + others; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (i < guests)
                guest(atoi(argv[2]), pipes[1]);
            idle(NULL);
        }
        if (i < guests)
            printf("%d\n", pid);
    }
    for (int i = 0; i < guests; i++)
        if (read(pipes[0], buffer, 1) != 1)
            return 1;
    // A thread sets its name after its guest has reported that it runs.
    usleep(200000);
    puts("ready");
    fflush(stdout);
    while (read(0, buffer, sizeof buffer) > 0)
        ;
    return 0;
}
