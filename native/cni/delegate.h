#ifndef PLUMBLINE_DELEGATE_H
#define PLUMBLINE_DELEGATE_H

#include "agent.h"

/* How a delegate's run came out. */
struct outcome {
    enum {
        EXITED,     /* by itself; `status` is its exit code */
        KILLED,     /* by a signal that was not ours; `status` is its number */
        ABORTED,    /* by us, as the agent asked: the verdict says why */
        TIMED_OUT,  /* by us, at the deadline */
        NOT_RUN,    /* errno in `status` */
        TOO_LONG,   /* by us: its answer is longer than the buffer */
    } how;
    int status;
};

/*
 * Finds the delegate: the first executable of that name on CNI_PATH that is not this program itself.
 * Returns 0, or -1 if there is none.
 */
int delegate_find(struct slice plugin, char *path, size_t size);

/* The configuration that a wrapped delegate gets. What does not fit sets `overflow` of the text. */
void delegate_conf(const struct call *call, struct text *conf);

/* How many gates this call has come through before this one. */
int delegate_depth(void);

/*
 * Runs the delegate with this configuration and collects what it prints. Its standard error is ours.
 * `verb`: in the place of CNI_COMMAND, and its standard error goes nowhere; null: the call as it came. `deadline`: of the monotonic clock in ms; 0: none.
 * `agent`: whose word may abort it; null: none.
 */
struct outcome delegate_run(const char *path, const char *verb, struct slice conf, long long deadline,
                            struct agent *agent, struct verdict *verdict, struct text *output);

#endif
