#ifndef PLUMBLINE_AGENT_H
#define PLUMBLINE_AGENT_H

#include "call.h"
#include "answer.h"

/*
 * The protocol with the agent, over its unix socket:
 *
 *   gate:  plumbline-gate/1 <verb> <bytes of environment> <bytes of configuration>\n<environment><configuration>
 *   agent: allow\n | wait\n | deny <code> <bytes>\n<message>
 *
 * The environment consists of the CNI_ variables, each followed by NUL. `wait` extends the agent's time to 2.5 s after the
 * request; another `wait` does not extend it. After `allow` of an ADD the connection stays open while the delegate runs; a
 * `deny` then aborts it.
 */
struct agent {
    int fd;
    char held[MESSAGE_MAX + 64];
    size_t length;
};

/*
 * Asks the agent. If it does not answer in time, the verdict is NO_VERDICT. `first_ms`: time until its first frame;
 * `whole_ms`: time until its verdict, from the same moment. agent->fd is an open connection only after ALLOW.
 */
void agent_ask(struct agent *agent, const struct call *call, int first_ms, int whole_ms, struct verdict *verdict);

/* Reads the frames that arrived while the delegate runs: DENY, or NO_VERDICT. Closes the connection if it has ended. */
void agent_heard(struct agent *agent, struct verdict *verdict);

void agent_close(struct agent *agent);

#endif
