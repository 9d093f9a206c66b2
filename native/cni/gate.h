#ifndef PLUMBLINE_GATE_H
#define PLUMBLINE_GATE_H

#include <stddef.h>

/* A reference to bytes elsewhere, without NUL. `at` is null if there are none. */
struct slice {
    const char *at;
    size_t length;
};

/*
 * A buffer of fixed size, because this program allocates no memory. Text that does not fit is dropped and sets
 * `overflow`. Only an environment can be larger than its buffer; all other texts are parts of a call of limited size.
 */
struct text {
    char *at;
    size_t size;
    size_t length;
    int overflow;
};

#define SLICE(literal) ((struct slice){literal, sizeof(literal) - 1})
#define TEXT(array) ((struct text){array, sizeof(array), 0, 0})

struct slice slice_of(const char *string);
int slice_is(struct slice slice, const char *string);

void text_clear(struct text *text);
void text_bytes(struct text *text, struct slice bytes);
void text_string(struct text *text, const char *string);
void text_number(struct text *text, unsigned long number);
/* Appends a JSON string with quotes; bytes that are not UTF-8 become '?'. */
void text_json(struct text *text, struct slice bytes);

/* A member to search for, and its raw value; empty if it is missing. */
struct json_field {
    const char *name;
    struct slice value;
};

/*
 * Checks that the text is exactly one JSON object, and finds some of its members. Of two members with the same name the
 * last counts, as in Go. Names are compared as written: a name with escapes is not found.
 * Returns 0, or -1 if the text is not an object or is nested deeper than 256 levels (RFC 8259).
 */
int json_object(struct slice text, struct json_field *fields, size_t count);

/* Calls `each` for each member of an object that json_object has accepted: its name without quotes, its raw value. */
void json_members(struct slice object, void (*each)(void *context, struct slice name, struct slice value),
                  void *context);

/* The text between a string's quotes, if it is a string without escapes; empty otherwise. */
struct slice json_plain(struct slice value);

/*
 * Whether an array of strings contains the name, or a prefix of it followed by `*`. Only for text that needs no
 * escapes.
 */
int json_has_name(struct slice array, struct slice name);

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

/*
 * The protocol with the agent, over its unix socket:
 *
 *   gate:  plumbline-gate/1 <verb> <bytes of environment> <bytes of configuration>\n<environment><configuration>
 *   agent: allow\n | wait\n | deny <code> <bytes>\n<message>
 *
 * The environment consists of the CNI_ variables, each followed by NUL. `wait` extends the agent's time to 2.5 s after the
 * request; another `wait` does not extend it. After `allow` of an ADD the connection stays open while the delegate runs; a
 * `deny` then aborts it.
 */
struct agent {
    int fd;
    char held[MESSAGE_MAX + 64];
    size_t length;
};

/*
 * Asks the agent. If it does not answer in time, the verdict is NO_VERDICT. `first_ms`: time until its first frame;
 * `whole_ms`: time until its verdict, from the same moment. agent->fd is an open connection only after ALLOW.
 */
void agent_ask(struct agent *agent, const struct call *call, int first_ms, int whole_ms, struct verdict *verdict);

/* Reads the frames that arrived while the delegate runs: DENY, or NO_VERDICT. Closes the connection if it has ended. */
void agent_heard(struct agent *agent, struct verdict *verdict);

void agent_close(struct agent *agent);

/*
 * Judges an ADD or a STATUS by the agent's last state file, a JSON object:
 *
 *   dpu            "not-ready": refuse; any other value: pass
 *   reason         the reason for "not-ready", for the message
 *   status         true: STATUS reports the DPU as well
 *   scope          "device": only attachments with a device depend on the DPU
 *   exempt         array of namespaces whose pods always pass; `openshift-*` matches all with that prefix
 *   at             time of the write, in milliseconds of CLOCK_MONOTONIC; a future time is from before a reboot
 *
 * The state counts while no agent runs, because a DPU does not recover when an agent stops, but no longer than a day: a
 * node whose agent is gone for good must not refuse pods for ever. A refusal by a state that is older than a minute says
 * how long the agent has not answered. Without a state all calls pass.
 * Never fails: it treats an unreadable file as absent.
 */
void state_judge(const struct call *call, struct verdict *verdict);

/* The result of a delegate's run. */
struct outcome {
    enum {
        EXITED,     /* it exited; `status` is its exit code */
        KILLED,     /* by a signal of another process; `status` is the number */
        ABORTED,    /* ended by this program at the agent's request: the verdict has the reason */
        TIMED_OUT,  /* ended by this program at the deadline */
        NOT_RUN,    /* `status` is errno */
        TOO_LONG,   /* ended by this program: its answer is longer than the buffer */
    } how;
    int status;
};

/*
 * Finds the delegate: the first executable of that name on CNI_PATH that is not this program itself.
 * Returns 0, or -1 if there is none.
 */
int delegate_find(struct slice plugin, char *path, size_t size);

/*
 * Runs the delegate with this configuration and collects its output. It inherits standard error.
 * `command`: replaces CNI_COMMAND and discards standard error; null: the call is unchanged. `deadline`: milliseconds of
 * the monotonic clock; 0: none. `agent`: may abort the run; null: none.
 */
struct outcome delegate_run(const char *path, const char *command, struct slice conf, long long deadline,
                            struct agent *agent, struct verdict *verdict, struct text *output);

/* Maximum bytes of a configuration and of a delegate's answer. */
#define LARGEST (1024 * 1024)

/* Answers one call of a container runtime, from the environment and `conf`. Returns the exit status; `answer` is the output. */
int gate_run(struct slice conf, struct text *answer);

#endif
