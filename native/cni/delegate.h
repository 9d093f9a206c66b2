#ifndef PLUMBLINE_DELEGATE_H
#define PLUMBLINE_DELEGATE_H

#include "agent.h"

/* The result of a delegate's run. */
struct outcome {
    enum {
        EXITED,     /* it exited; `status` is its exit code */
        KILLED,     /* by a signal of another process; `status` is the number */
        ABORTED,    /* ended by this program at the agent's request: the verdict has the reason */
        TIMED_OUT,  /* ended by this program at the deadline */
        NOT_RUN,    /* `status` is errno */
        TOO_LONG,   /* ended by this program: its answer is longer than the buffer */
    } how;
    int status;
};

/*
 * Finds the delegate: the first executable of that name on CNI_PATH that is not this program itself.
 * Returns 0, or -1 if there is none.
 */
int delegate_find(struct slice plugin, char *path, size_t size);

/* The delegate's configuration: at most 4 KiB more than that of the call. */
void delegate_conf(const struct call *call, struct text *conf);

/*
 * Runs the delegate with this configuration and collects its output. It inherits standard error.
 * `command`: replaces CNI_COMMAND and discards standard error; null: the call is unchanged. `deadline`: milliseconds of
 * the monotonic clock; 0: none. `agent`: may abort the run; null: none.
 */
struct outcome delegate_run(const char *path, const char *command, struct slice conf, long long deadline,
                            struct agent *agent, struct verdict *verdict, struct text *output);

#endif
