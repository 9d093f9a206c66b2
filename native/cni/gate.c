/*
 * The gate's behaviour for each verb:
 *
 *   ADD              asks the agent; after a refusal it returns the error and does not execute the delegate
 *   STATUS           the same
 *   DEL, CHECK, GC   always allowed without asking the agent: they must work even if the agent does not
 *   VERSION          its own versions
 */
#include "gate.h"

/* Whether the runtime determines the value of a member of the delegate's object; libcni inserts the same ones. */
static int is_injected(const struct call *call, struct slice name)
{
    return slice_is(name, "cniVersion") || slice_is(name, "prevResult") ||
           slice_is(name, "cni.dev/valid-attachments") || (slice_is(name, "name") && call->name.length > 0) ||
           (slice_is(name, "runtimeConfig") && call->runtime_config.length > 0) ||
           (slice_is(name, "args") && call->args.length > 0);
}

struct building {
    const struct call *call;
    struct text *conf;
};

/* The version comes first, so every other member follows one. */
static void put(struct text *conf, struct slice name, struct slice value)
{
    if (value.length == 0)
        return;
    text_string(conf, ",\"");
    text_bytes(conf, name);
    text_string(conf, "\":");
    text_bytes(conf, value);
}

static void copy_member(void *context, struct slice name, struct slice value)
{
    const struct building *building = context;
    if (!is_injected(building->call, name))
        put(building->conf, name, value);
}

/* The delegate's configuration: at most 4 KiB more than that of the call. */
static void delegate_conf(const struct call *call, struct text *conf)
{
    struct building building = {call, conf};
    text_clear(conf);
    text_string(conf, "{\"cniVersion\":");
    text_json(conf, call->version);
    put(conf, SLICE("name"), call->name);
    json_members(call->delegate, copy_member, &building);
    put(conf, SLICE("args"), call->args);
    put(conf, SLICE("runtimeConfig"), call->runtime_config);
    put(conf, SLICE("prevResult"), call->prev_result);
    put(conf, SLICE("cni.dev/valid-attachments"), call->valid_attachments);
    text_string(conf, "}");
}

/* Milliseconds. A working agent answers within one or two; one that vacates CPUs sends `wait` and has 2 s for it. */
#define ADD_FIRST 1000
#define ADD_WHOLE 2500
/* STATUS takes less than a second in total: a runtime may wait for it without a limit. */
#define STATUS_FIRST 250
#define STATUS_WHOLE 600
/* Time for a delegate to clean up after a failed ADD; the runtime calls DEL again in any case. */
#define CLEAN_UP 5000

static int refuse(const struct call *call, const struct verdict *verdict, struct text *answer)
{
    return answer_error(answer, call->version, verdict->code, (struct slice){verdict->bytes, verdict->length});
}

/* Fails with the delegate's name, a text and, unless it is negative, a number. */
static int fail(const struct call *call, struct text *answer, unsigned code, const char *text, int number)
{
    static char buffer[512];
    struct text message = TEXT(buffer);
    text_string(&message, "plumbline-gate: ");
    text_bytes(&message, call->plugin);
    text_string(&message, " ");
    text_string(&message, text);
    if (number >= 0)
        text_number(&message, (unsigned long)number);
    return answer_error(answer, call->version, code, (struct slice){message.at, message.length});
}

/* Reports why a delegate has no answer to pass on. */
static int explain(const struct call *call, struct outcome outcome, const struct verdict *verdict, struct text *answer)
{
    switch (outcome.how) {
    case ABORTED:
        return refuse(call, verdict, answer);
    case TIMED_OUT:
        return fail(call, answer, CODE_UNAVAILABLE, "does not answer STATUS in time", -1);
    case TOO_LONG:
        return fail(call, answer, CODE_IO, "answers more than a MiB", -1);
    case KILLED:
        return fail(call, answer, CODE_INTERNAL, "was ended by signal ", outcome.status);
    default:
        return fail(call, answer, CODE_INTERNAL, "cannot be executed: errno ", outcome.status);
    }
}

/* The delegate's DEL after its ADD; the answer is ignored. */
static void clean_up(const char *path, struct slice conf)
{
    static char bytes[4096];
    static struct verdict none;
    struct text output = TEXT(bytes);
    delegate_run(path, "CNI_COMMAND=DEL", conf, now_ms() + CLEAN_UP, 0, &none, &output);
}

/*
 * Runs the delegate and passes on its output and exit status. It cleans up after an aborted or failed ADD, as the
 * specification requires of a plugin that delegates.
 */
static int run_delegate(const struct call *call, long long deadline, struct agent *agent, struct verdict *verdict,
                        struct text *answer)
{
    /* The delegate's configuration consists of parts of the call's. */
    static char path[4096], bytes[LARGEST + 4096];
    struct text own = TEXT(bytes);
    if (delegate_find(call->plugin, path, sizeof path))
        return fail(call, answer, CODE_CONFIG, "is in no directory of CNI_PATH", -1);
    delegate_conf(call, &own);
    struct slice conf = {own.at, own.length};
    struct outcome outcome = delegate_run(path, 0, conf, deadline, agent, verdict, answer);
    int failed = outcome.how != EXITED || outcome.status != 0;
    if (call->verb == ADD && failed)
        clean_up(path, conf);
    return outcome.how == EXITED ? outcome.status : explain(call, outcome, verdict, answer);
}

int gate_run(struct slice conf, struct text *answer)
{
    static struct call call;
    static struct agent agent;
    static struct verdict verdict;
    long long deadline = 0;
    text_clear(answer);
    agent.fd = -1;
    int status = call_read(&call, conf, answer);
    if (status)
        return status;
    if (call.verb == VERSION) {
        answer_versions(answer);
        return 0;
    }
    if (call.verb == STATUS)
        deadline = now_ms() + STATUS_WHOLE;
    if (call.verb == ADD || call.verb == STATUS) {
        int is_add = call.verb == ADD;
        agent_ask(&agent, &call, is_add ? ADD_FIRST : STATUS_FIRST, is_add ? ADD_WHOLE : STATUS_FIRST, &verdict);
        if (verdict.kind == NO_VERDICT)
            state_judge(&call, &verdict);
        if (verdict.kind == DENY)
            return refuse(&call, &verdict, answer);
    }
    status = run_delegate(&call, deadline, call.verb == ADD ? &agent : 0, &verdict, answer);
    agent_close(&agent);
    return status;
}
