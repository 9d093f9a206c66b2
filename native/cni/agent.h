#ifndef PLUMBLINE_AGENT_H
#define PLUMBLINE_AGENT_H

#include "call.h"
#include "verdict.h"

/*
 * The conversation with the agent, over its unix socket:
 *
 *   gate:  plumbline-gate/1 <verb> <form> <bytes of environment> <bytes of configuration>\n<environment><configuration>
 *   agent: allow\n | wait\n | deny <code> <bytes>\n<message>
 *
 * The environment is the CNI_ variables, each ended by NUL. After `wait` the agent takes longer, up to 2.5 s since the
 * question; another `wait` gives no more. After `allow` of an ADD the connection stays open while the delegate runs; a `deny` then means: abort it.
 */
struct agent {
    int fd;
    char held[MESSAGE_MAX + 64];
    size_t length;
};

/*
 * Asks the agent; without an answer in time the verdict is NO_VERDICT. `first_ms`: until its first word; `whole_ms`: until
 * its verdict, from the same moment. An open connection is left in agent->fd only
 * after ALLOW.
 */
void agent_ask(struct agent *agent, const struct call *call, int first_ms, int whole_ms, struct verdict *verdict);

/* Reads what has come in while the delegate runs: DENY, or NO_VERDICT; closes the connection when it has ended. */
void agent_heard(struct agent *agent, struct verdict *verdict);

void agent_close(struct agent *agent);

#endif
