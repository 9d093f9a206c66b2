#ifndef PLUMBLINE_GATE_H
#define PLUMBLINE_GATE_H

#include "text.h"

/* Maximum bytes of a configuration and of a delegate's answer. */
#define LARGEST (1024 * 1024)

/* Answers one call of a container runtime, from the environment and `conf`. Returns the exit status; `answer` is the output. */
int gate_run(struct slice conf, struct text *answer);

#endif
