#ifndef PLUMBLINE_STATE_H
#define PLUMBLINE_STATE_H

#include "call.h"
#include "verdict.h"

/*
 * Judges an ADD or a STATUS by what the agent last wrote into its state file, a JSON object:
 *
 *   dpu            "ready" or "not-ready"; anything else: there is no DPU to be gated
 *   reason         why not, for the message
 *   status         true: STATUS reports the DPU as well
 *   scope          "device": only attachments that have a device are gated
 *   exempt         array of namespaces whose pods always pass; `openshift-*` is all that begin so
 *   at             milliseconds of CLOCK_MONOTONIC when it was written; one from the future is from before a reboot
 *   staleAfter     milliseconds after which it counts as stale
 *   whenStale      "open" or "closed"; anything else: it still counts
 *
 * Without a file everything passes, or no ADD does, as the settings say (whenAbsent). Never fails: what cannot
 * be read is absent.
 */
void state_judge(const struct call *call, struct verdict *verdict);

#endif
