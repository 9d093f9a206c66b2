#ifndef PLUMBLINE_GATE_H
#define PLUMBLINE_GATE_H

#include "text.h"

/* Bytes of the largest configuration and of the largest answer of a delegate. */
#define LARGEST (1024 * 1024)

/*
 * Answers one call of a container runtime, which is in the environment and in `conf`. `program` is the name this was
 * called by. Returns the exit status; what is to be printed is in `answer`.
 */
int gate_run(const char *program, struct slice conf, struct text *answer);

#endif
