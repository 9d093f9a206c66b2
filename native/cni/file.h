#ifndef PLUMBLINE_FILE_H
#define PLUMBLINE_FILE_H

#include "text.h"

/*
 * Reads a regular file that is smaller than the buffer. Returns no bytes for a link, a pipe, a device, a larger file,
 * or a file that users other than root and the caller's own may have written: none of them may delay or control the
 * call.
 */
struct slice read_file(const char *path, char *buffer, size_t size);

#endif
