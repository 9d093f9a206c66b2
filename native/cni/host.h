#ifndef PLUMBLINE_HOST_H
#define PLUMBLINE_HOST_H

#include "text.h"

/* Milliseconds since the machine started: the same for every process. */
long long now_ms(void);

/* Milliseconds until the deadline, for poll(2): 0 if it has passed, -1 (no limit) if `deadline` is 0. */
int left_ms(long long deadline);

/*
 * Reads a regular file that is smaller than the buffer. Returns no bytes for a link, a pipe, a device, a larger file,
 * or a file that users other than root and the caller's own may have written: none of them may delay or control the
 * call.
 */
struct slice read_file(const char *path, char *buffer, size_t size);

/* Bytes of a path in the agent's directory: those of a socket's address. */
#define RUN_PATH_MAX 108

/*
 * The path of a file in the agent's directory. A network configuration cannot set the directory: its author may be a tenant,
 * and this program runs as root. Only the runtime's own environment can, by PLUMBLINE_RUN_DIR.
 */
void run_path(char path[RUN_PATH_MAX], const char *name);

#endif
