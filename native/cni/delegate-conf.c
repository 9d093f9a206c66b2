#include "delegate.h"
#include "json.h"

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

void delegate_conf(const struct call *call, struct text *conf)
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
