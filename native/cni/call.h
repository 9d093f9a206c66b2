#ifndef PLUMBLINE_CALL_H
#define PLUMBLINE_CALL_H

#include "settings.h"
#include "text.h"

enum verb { ADD, DEL, CHECK, GC, STATUS, VERSION };

/*
 * The relation of the gate to the plugin that does the work, from the configuration:
 * - chained: `"type": "plumbline-gate"` in a list, before the others, which the runtime calls itself.
 * - wrapper: the same with a `"delegate": {…}`, which the gate executes.
 * - interposer: any other type; the runtime found the gate under that name on CNI_PATH, and the gate executes the next
 * plugin of the name.
 */
enum form { CHAINED, WRAPPER, INTERPOSER };

/* One call of a runtime: environment and configuration, parsed but not copied. */
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
    /* The delegate's object, in the wrapper form. */
    struct slice delegate;
    /* The delegate's plugin; empty when chained. */
    struct slice plugin;
    /* Whether the attachment has a device of its own. */
    int has_device;
    struct settings settings;
};

extern const char *const VERBS[];
extern const char *const FORMS[];

/*
 * Reads a call from the environment and the configuration. `program` is the name by which this program was called.
 * Returns 0, or the exit status with the error in `answer`.
 */
int call_read(struct call *call, const char *program, struct slice conf, struct text *answer);

/*
 * The pod's namespace from CNI_ARGS; empty if it is missing. Of two, the first counts: the runtime writes its own
 * first, and a meta-plugin appends another.
 */
struct slice call_namespace(void);

#endif
