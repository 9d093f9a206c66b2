#include "state.h"

#include "host.h"
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

static void deny(const struct call *call, struct verdict *verdict, struct slice reason)
{
    struct text message = TEXT(verdict->bytes);
    text_string(&message, "DPU Not Ready: ");
    text_bytes(&message, reason);
    verdict->kind = DENY;
    verdict->code = call->verb == STATUS ? CODE_UNAVAILABLE : CODE_LATER;
    verdict->length = message.length;
}

void state_judge(const struct call *call, struct verdict *verdict)
{
    static char buffer[16384];
    enum { DPU, REASON, STATUS_TOO, SCOPE, EXEMPT, AT, COUNT };
    struct json_field field[COUNT] = {
        [DPU] = {.name = "dpu"},
        [REASON] = {.name = "reason"},
        [STATUS_TOO] = {.name = "status"},
        [SCOPE] = {.name = "scope"},
        [EXEMPT] = {.name = "exempt"},
        [AT] = {.name = "at"},
    };
    char path[RUN_PATH_MAX];
    run_path(path, "gate.state");
    struct slice content = read_file(path, buffer, sizeof buffer);
    int readable = json_object(content, field, COUNT) == 0;
    long long at = number_of(field[AT].value);
    verdict->kind = ALLOW;
    if (!readable || at < 0 || at > now_ms())
        return;
    if (call->verb == STATUS && !slice_is(field[STATUS_TOO].value, "true"))
        return;
    if (call->verb == ADD && json_has_name(field[EXEMPT].value, call_namespace()))
        return;
    if (call->verb == ADD && slice_is(json_plain(field[SCOPE].value), "device") && !call->has_device)
        return;
    if (slice_is(json_plain(field[DPU].value), "not-ready"))
        deny(call, verdict, json_plain(field[REASON].value));
}
