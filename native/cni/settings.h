#ifndef PLUMBLINE_SETTINGS_H
#define PLUMBLINE_SETTINGS_H

/*
 * What the node's administrator sets. A network configuration sets none of it: its author may be a tenant, and this
 * program runs as root.
 */
struct settings {
    /* Where the agent listens and where it leaves what it last knew. */
    char socket[108];
    char state[1024];
    /* Whether an ADD is refused when there is neither agent nor state. */
    int closed_when_absent;
};

/*
 * Reads `plumbline-gate.conf` in the directory of this program's file, a JSON object: `socket`, `stateFile`,
 * `whenAbsent`. Who can write there can replace the program as well. Without the file, or where it lacks a member, what
 * is compiled in holds. PLUMBLINE_GATE_SOCKET and PLUMBLINE_GATE_STATE, which a runtime sets, go over it.
 */
void settings_read(struct settings *settings);

#endif
