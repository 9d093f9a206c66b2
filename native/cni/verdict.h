#ifndef PLUMBLINE_VERDICT_H
#define PLUMBLINE_VERDICT_H

#include "answer.h"

/* Whether a call may go on. */
struct verdict {
    enum { NO_VERDICT, ALLOW, DENY } kind;
    /* Of a refusal: the CNI error's code and text. */
    unsigned code;
    char bytes[MESSAGE_MAX];
    size_t length;
};

#endif
