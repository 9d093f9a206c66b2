#ifndef PLUMBLINE_ANSWER_H
#define PLUMBLINE_ANSWER_H

#include "text.h"

/* Error codes of the CNI specification, and 999 for all other errors, as in libcni's own plugins. */
enum code {
    CODE_VERSION = 1,
    CODE_ENV = 4,
    CODE_IO = 5,
    CODE_DECODE = 6,
    CODE_CONFIG = 7,
    CODE_LATER = 11,
    CODE_UNAVAILABLE = 50,
    CODE_INTERNAL = 999,
};

/* Maximum bytes of a message; a longer one is truncated. */
#define MESSAGE_MAX 2048

/* The supported CNI versions, oldest first; ends with null. */
extern const char *const SUPPORTED[];

/* The index of a version in SUPPORTED, or -1. */
int version_place(struct slice version);

/* Whether a version is supported and is at least `least`. */
int version_reaches(struct slice version, const char *least);

/* Replaces the answer with an error in the form of the specification. Returns the exit status, 1. */
int answer_error(struct text *answer, struct slice version, unsigned code, struct slice message);

void answer_versions(struct text *answer);

/* Whether a call may continue. */
struct verdict {
    enum { NO_VERDICT, ALLOW, DENY } kind;
    /* Code and text of the CNI error, for a refusal. */
    unsigned code;
    char bytes[MESSAGE_MAX];
    size_t length;
};

#endif
