#ifndef PLUMBLINE_CALL_H
#define PLUMBLINE_CALL_H

#include "settings.h"
#include "text.h"

enum verb { ADD, DEL, CHECK, GC, STATUS, VERSION };

/*
 * How the gate stands to the plugin that does the work, as the configuration says:
 * - chained: `"type": "plumbline-gate"` in a list, before the others; the runtime calls those itself.
 * - wrapper: the same with a `"delegate": {…}`, which the gate executes.
 * - interposer: any other type; the gate was found under that name on CNI_PATH and executes the next of the name.
 */
enum form { CHAINED, WRAPPER, INTERPOSER };

/* One call of a runtime: environment and configuration, read but not copied. */
struct call {
    enum verb verb;
    enum form form;
    struct slice conf;
    struct slice version;
    struct slice name;
    struct slice prev_result;
    struct slice runtime_config;
    struct slice args;
    struct slice valid_attachments;
    /* The delegate's object, in the form of a wrapper. */
    struct slice delegate;
    /* The delegate's plugin; none when chained. */
    struct slice plugin;
    /* Whether the attachment says that it has a device of its own. */
    int has_device;
    struct settings settings;
};

extern const char *const VERBS[];
extern const char *const FORMS[];

/*
 * Reads a call from the environment and the configuration. `program` is the name this program was called by.
 * Returns 0, or the exit status with the error in `answer`.
 */
int call_read(struct call *call, const char *program, struct slice conf, struct text *answer);

/*
 * The pod's namespace, from CNI_ARGS; no bytes if it is not there. Of two the first counts, which is the runtime's own:
 * what a meta-plugin adds comes after it.
 */
struct slice call_namespace(void);

#endif
