#ifndef PLUMBLINE_CLOCK_H
#define PLUMBLINE_CLOCK_H

/* Milliseconds since the machine started: the same for every process. */
long long now_ms(void);

/* Milliseconds until the deadline, for poll(2): 0 if it has passed, -1 (no limit) if `deadline` is 0. */
int left_ms(long long deadline);

#endif
