#ifndef PLUMBLINE_STATE_H
#define PLUMBLINE_STATE_H

#include "call.h"
#include "answer.h"

/*
 * Judges an ADD or a STATUS by the agent's last state file, a JSON object:
 *
 *   dpu            "not-ready": refuse; any other value: pass
 *   reason         the reason for "not-ready", for the message
 *   status         true: STATUS reports the DPU as well
 *   scope          "device": only attachments with a device depend on the DPU
 *   exempt         array of namespaces whose pods always pass; `openshift-*` matches all with that prefix
 *   at             time of the write, in milliseconds of CLOCK_MONOTONIC; a future time is from before a reboot
 *
 * The state counts however old it is, because a DPU does not recover when an agent stops. Without a file all calls pass.
 * Never fails: it treats an unreadable file as absent.
 */
void state_judge(const struct call *call, struct verdict *verdict);

#endif
