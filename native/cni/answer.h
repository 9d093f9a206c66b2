#ifndef PLUMBLINE_ANSWER_H
#define PLUMBLINE_ANSWER_H

#include "text.h"

/* Error codes of the CNI specification, and 999 as libcni's own plugins have it for what is none of them. */
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

/* Bytes of the longest message; what is longer is cut. */
#define MESSAGE_MAX 2048

/* The CNI versions that are spoken, from the oldest; ended by null. */
extern const char *const SUPPORTED[];

/* The place of a version in SUPPORTED, -1 if it is not there. */
int version_place(struct slice version);

/* Whether a version is spoken and is at least that one. */
int version_reaches(struct slice version, const char *least);

/* Replaces the answer by an error in the form of the specification. Returns the exit status, 1. */
int answer_error(struct text *answer, struct slice version, unsigned code, struct slice message);

/* `{"cniVersion":…}`: a result without interfaces, which lets the next plugin of the list run. */
void answer_empty_result(struct text *answer, struct slice version);

void answer_versions(struct text *answer);

#endif
