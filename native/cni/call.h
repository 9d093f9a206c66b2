#ifndef PLUMBLINE_CALL_H
#define PLUMBLINE_CALL_H

#include "text.h"

enum verb { ADD, DEL, CHECK, GC, STATUS, VERSION };

/* One call of a runtime: environment and configuration, parsed but not copied. */
struct call {
    enum verb verb;
    struct slice conf;
    struct slice version;
    struct slice name;
    struct slice prev_result;
    struct slice runtime_config;
    struct slice args;
    struct slice valid_attachments;
    /* The delegate: the plugin that the gate stands in front of. Empty for VERSION. */
    struct slice delegate;
    struct slice plugin;
    /* Whether the attachment has a device of its own. */
    int has_device;
};

extern const char *const VERBS[];

/*
 * Reads a call from the environment and the configuration. Returns 0, or the exit status with the error in `answer`.
 */
int call_read(struct call *call, struct slice conf, struct text *answer);

/*
 * The pod's namespace from CNI_ARGS; empty if it is missing. Of two, the first counts: the runtime writes its own
 * first, and a meta-plugin appends another.
 */
struct slice call_namespace(void);

#endif
