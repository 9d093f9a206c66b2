#ifndef PLUMBLINE_RUN_DIRECTORY_H
#define PLUMBLINE_RUN_DIRECTORY_H

/* Bytes of a path in the agent's directory: those of a socket's address. */
#define RUN_PATH_MAX 108

/*
 * The path of a file in the agent's directory. A network configuration cannot set the directory: its author may be a tenant,
 * and this program runs as root. Only the runtime's own environment can, by PLUMBLINE_RUN_DIR.
 */
void run_path(char path[RUN_PATH_MAX], const char *name);

#endif
