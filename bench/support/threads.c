/*
 * A stand-in for a daemon of Open vSwitch: a process with its name, a number of idle threads and a locked
 * pidfile.
 *
 * Usage: threads <name> <threads> <pidfile>. Prints its pid when all threads run; ends with its standard input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *idle(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv)
{
    char buffer[64];
    struct flock lock = {.l_type = F_WRLCK};
    int pidfile;
    pthread_attr_t small;
    if (argc != 4)
        return 2;
    prctl(PR_SET_NAME, argv[1]);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 1; i < atoi(argv[2]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, idle, NULL))
            return 1;
    }
    pidfile = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (pidfile < 0 || fcntl(pidfile, F_SETLK, &lock))
        return 1;
    dprintf(pidfile, "%d\n", getpid());
    printf("%d\n", getpid());
    fflush(stdout);
    while (read(0, buffer, sizeof buffer) > 0)
        ;
    return 0;
}
