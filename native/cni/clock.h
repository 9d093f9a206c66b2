#ifndef PLUMBLINE_CLOCK_H
#define PLUMBLINE_CLOCK_H

/* Milliseconds since the machine's start: the same for every process. */
long long now_ms(void);

/* Milliseconds until then for poll(2): 0 when past, -1 (no limit) where `deadline` is 0. */
int left_ms(long long deadline);

void sleep_ms(int millis);

#endif
