#ifndef PLUMBLINE_VERDICT_H
#define PLUMBLINE_VERDICT_H

#include "answer.h"

/* Whether a call may continue. */
struct verdict {
    enum { NO_VERDICT, ALLOW, DENY } kind;
    /* Code and text of the CNI error, for a refusal. */
    unsigned code;
    char bytes[MESSAGE_MAX];
    size_t length;
};

#endif
