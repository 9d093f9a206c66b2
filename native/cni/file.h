#ifndef PLUMBLINE_FILE_H
#define PLUMBLINE_FILE_H

#include "text.h"

/*
 * Reads a regular file that is smaller than the buffer. A link, a pipe, a device, a larger file, or one that another
 * user than root and the caller's own may have written has no bytes: none of them may hold up the call or steer it.
 */
struct slice read_file(const char *path, char *buffer, size_t size);

#endif
