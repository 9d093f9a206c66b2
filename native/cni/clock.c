#include "clock.h"

#include <time.h>

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
