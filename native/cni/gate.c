/*
 * The gate's behaviour for each verb:
 *
 *   ADD              asks the agent; after a refusal it returns the error and does not execute the delegate
 *   STATUS           the same
 *   DEL, CHECK, GC   always allowed without asking the agent: they must work even if the agent does not
 *   VERSION          its own versions, or the delegate's when interposed
 */
#include "gate.h"

#include "clock.h"
#include "delegate.h"
#include "state.h"

/* Milliseconds. A working agent answers within one or two; one that vacates CPUs sends `wait` and has 2 s for it. */
#define ADD_FIRST 1000
#define ADD_WHOLE 2500
/* STATUS takes less than a second in total: a runtime may wait for it without a limit. */
#define STATUS_FIRST 250
#define STATUS_WHOLE 600
/* Time for a delegate to clean up after a failed ADD; the runtime calls DEL again in any case. */
#define CLEAN_UP 5000
/* A wrapper around an interposed plugin makes two; more are copies that find each other on CNI_PATH. */
#define DEEPEST_GATE 4

static int refuse(const struct call *call, const struct verdict *verdict, struct text *answer)
{
    return answer_error(answer, call->version, verdict->code, (struct slice){verdict->bytes, verdict->length});
}

static int fail(const struct call *call, struct text *answer, unsigned code, struct slice text)
{
    static char buffer[512];
    struct text message = TEXT(buffer);
    text_string(&message, "plumbline-gate: ");
    text_bytes(&message, call->plugin);
    text_string(&message, " ");
    text_bytes(&message, text);
    return answer_error(answer, call->version, code, (struct slice){message.at, message.length});
}

static int fail_with(const struct call *call, struct text *answer, const char *text, int number)
{
    static char buffer[64];
    struct text message = TEXT(buffer);
    text_string(&message, text);
    text_number(&message, (unsigned long)number);
    return fail(call, answer, CODE_INTERNAL, (struct slice){message.at, message.length});
}

/* Reports why a delegate has no answer to pass on. */
static int explain(const struct call *call, struct outcome outcome, const struct verdict *verdict, struct text *answer)
{
    switch (outcome.how) {
    case ABORTED:
        return refuse(call, verdict, answer);
    case TIMED_OUT:
        return fail(call, answer, CODE_UNAVAILABLE, SLICE("does not answer STATUS in time"));
    case TOO_LONG:
        return fail(call, answer, CODE_IO, SLICE("answers more than a MiB"));
    case KILLED:
        return fail_with(call, answer, "was ended by signal ", outcome.status);
    default:
        return fail_with(call, answer, "cannot be executed: errno ", outcome.status);
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
 * Runs the delegate and passes on its output and exit status. It cleans up after an aborted ADD, and after a failed one
 * in a wrapper, as the specification requires of a plugin that delegates. After an interposed one, the runtime cleans
 * up.
 */
static int run_delegate(const struct call *call, long long deadline, struct agent *agent, struct verdict *verdict,
                        struct text *answer)
{
    /* The delegate's configuration consists of parts of the call's. */
    static char path[4096], bytes[LARGEST + 4096];
    struct text own = TEXT(bytes);
    struct slice conf = call->conf;
    if (delegate_depth() >= DEEPEST_GATE)
        return fail(call, answer, CODE_CONFIG, SLICE("is not reached: gates call each other, check CNI_PATH"));
    if (delegate_find(call->plugin, path, sizeof path))
        return fail(call, answer, CODE_CONFIG, SLICE("is in no directory of CNI_PATH"));
    if (call->form == WRAPPER) {
        delegate_conf(call, &own);
        conf = (struct slice){own.at, own.length};
    }
    struct outcome outcome = delegate_run(path, 0, conf, deadline, agent, verdict, answer);
    int failed = outcome.how != EXITED || outcome.status != 0;
    if (call->verb == ADD && failed && (call->form == WRAPPER || outcome.how == ABORTED))
        clean_up(path, conf);
    return outcome.how == EXITED ? outcome.status : explain(call, outcome, verdict, answer);
}

/* The output of the chained form for an allowed call. */
static void pass(const struct call *call, struct text *answer)
{
    if (call->verb != ADD)
        return;
    if (call->prev_result.length == 0 || slice_is(call->prev_result, "null"))
        answer_empty_result(answer, call->version);
    else
        text_bytes(answer, call->prev_result);
}

/* The delegate refuses STATUS in a version without that verb. */
static int is_asked_about(const struct call *call)
{
    return call->verb == ADD || (call->verb == STATUS && version_reaches(call->version, "1.1.0"));
}

int gate_run(const char *program, struct slice conf, struct text *answer)
{
    static struct call call;
    static struct agent agent;
    static struct verdict verdict;
    long long deadline = 0;
    text_clear(answer);
    agent.fd = -1;
    int status = call_read(&call, program, conf, answer);
    if (status)
        return status;
    if (call.verb == VERSION && call.form != INTERPOSER) {
        answer_versions(answer);
        return 0;
    }
    if (call.verb == STATUS)
        deadline = now_ms() + STATUS_WHOLE;
    if (is_asked_about(&call)) {
        int is_add = call.verb == ADD;
        agent_ask(&agent, &call, is_add ? ADD_FIRST : STATUS_FIRST, is_add ? ADD_WHOLE : STATUS_FIRST, &verdict);
        if (verdict.kind == NO_VERDICT)
            state_judge(&call, &verdict);
        if (verdict.kind == DENY)
            return refuse(&call, &verdict, answer);
    }
    if (call.form == CHAINED) {
        pass(&call, answer);
        agent_close(&agent);
        return 0;
    }
    status = run_delegate(&call, deadline, call.verb == ADD ? &agent : 0, &verdict, answer);
    agent_close(&agent);
    return status;
}
