#ifndef PLUMBLINE_SETTINGS_H
#define PLUMBLINE_SETTINGS_H

/*
 * The settings of the node's administrator. A network configuration cannot set them: its author may be a tenant, and
 * this program runs as root.
 */
struct settings {
    /* The agent's socket, and the file with its last state. */
    char socket[108];
    char state[1024];
    /* Whether an ADD is refused when there is neither an agent nor a state file. */
    int closed_when_absent;
};

/*
 * Reads `plumbline-gate.conf` in the directory of this program's file, a JSON object: `socket`, `stateFile`,
 * `whenAbsent`. Anyone who can write there can replace the program as well. Missing values have compiled-in defaults.
 * PLUMBLINE_GATE_SOCKET and PLUMBLINE_GATE_STATE, which a runtime may set, override them.
 */
void settings_read(struct settings *settings);

#endif
