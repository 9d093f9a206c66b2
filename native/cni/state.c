#include "state.h"

#include "clock.h"
#include "file.h"
#include "json.h"

/* An integer of at most fifteen digits; -1 if it is not one. */
static long long number_of(struct slice value)
{
    long long number = 0;
    if (value.length == 0 || value.length > 15)
        return -1;
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return -1;
        number = number * 10 + (value.at[i] - '0');
    }
    return number;
}

static void deny(const struct call *call, struct verdict *verdict, const char *why, struct slice reason)
{
    struct text message = TEXT(verdict->bytes);
    text_string(&message, why);
    text_bytes(&message, reason);
    verdict->kind = DENY;
    verdict->code = call->verb == STATUS ? CODE_UNAVAILABLE : CODE_LATER;
    verdict->length = message.length;
}

void state_judge(const struct call *call, struct verdict *verdict)
{
    static char buffer[16384];
    enum { DPU, REASON, STATUS_TOO, SCOPE, EXEMPT, AT, STALE_AFTER, WHEN_STALE, COUNT };
    struct json_field field[COUNT] = {
        [DPU] = {.name = "dpu"},
        [REASON] = {.name = "reason"},
        [STATUS_TOO] = {.name = "status"},
        [SCOPE] = {.name = "scope"},
        [EXEMPT] = {.name = "exempt"},
        [AT] = {.name = "at"},
        [STALE_AFTER] = {.name = "staleAfter"},
        [WHEN_STALE] = {.name = "whenStale"},
    };
    struct slice content = read_file(call->settings.state, buffer, sizeof buffer);
    int readable = json_object(content, field, COUNT) == 0;
    long long at = number_of(field[AT].value), age = now_ms() - at;
    verdict->kind = ALLOW;
    if (!readable || at < 0 || age < 0) {
        if (call->verb == ADD && call->settings.closed_when_absent)
            deny(call, verdict, "DPU Not Ready: the node agent does not answer and has left no state", SLICE(""));
        return;
    }
    if (call->verb == STATUS && !slice_is(field[STATUS_TOO].value, "true"))
        return;
    if (call->verb == ADD && json_has_name(field[EXEMPT].value, call_namespace()))
        return;
    if (call->verb == ADD && slice_is(json_plain(field[SCOPE].value), "device") && !call->has_device)
        return;
    struct slice dpu = json_plain(field[DPU].value);
    if (!slice_is(dpu, "ready") && !slice_is(dpu, "not-ready"))
        return;
    long long limit = number_of(field[STALE_AFTER].value);
    struct slice stale = json_plain(field[WHEN_STALE].value);
    if (limit >= 0 && age > limit && (slice_is(stale, "open") || slice_is(stale, "closed"))) {
        if (slice_is(stale, "closed"))
            deny(call, verdict, "DPU Not Ready: the node agent does not answer, and what it left is stale", SLICE(""));
        return;
    }
    if (slice_is(dpu, "not-ready"))
        deny(call, verdict, "DPU Not Ready: ", json_plain(field[REASON].value));
}
