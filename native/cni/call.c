#include "gate.h"

#include <stdlib.h>
#include <string.h>

/* Maximum bytes of a wrong value in a message: it may come from a tenant and be as long as the whole configuration. */
#define SHOWN 80

const char *const VERBS[] = {"ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION", 0};

/* The variables that each verb requires in addition to CNI_COMMAND, as in libcni's own plugins. */
static const struct {
    const char *variable;
    unsigned verbs;
} REQUIRED[] = {
    {"CNI_CONTAINERID", 1 << ADD | 1 << DEL | 1 << CHECK},
    {"CNI_NETNS", 1 << ADD | 1 << CHECK},
    {"CNI_IFNAME", 1 << ADD | 1 << DEL | 1 << CHECK},
    {"CNI_PATH", 1 << ADD | 1 << DEL | 1 << CHECK | 1 << GC | 1 << STATUS},
};

/* Fails with a message of three parts; the middle one is the wrong value, truncated if it is long. */
static int fail(const struct call *call, struct text *answer, unsigned code, const char *before, struct slice value,
                const char *after)
{
    static char buffer[MESSAGE_MAX];
    struct text message = TEXT(buffer);
    int is_long = value.length > SHOWN;
    text_string(&message, before);
    text_bytes(&message, (struct slice){value.at, is_long ? SHOWN : value.length});
    text_string(&message, is_long ? "..." : "");
    text_string(&message, after);
    return answer_error(answer, call->version, code, (struct slice){message.at, message.length});
}

static int read_verb(struct call *call, struct text *answer)
{
    const char *command = getenv("CNI_COMMAND");
    if (!command || !*command)
        return fail(call, answer, CODE_ENV, "required env variables [CNI_COMMAND] missing", SLICE(""), "");
    for (int i = 0; VERBS[i]; i++)
        if (strcmp(command, VERBS[i]) == 0) {
            call->verb = (enum verb)i;
            return 0;
        }
    return fail(call, answer, CODE_ENV, "unknown CNI_COMMAND: ", slice_of(command), "");
}

static int check_environment(const struct call *call, struct text *answer)
{
    static char buffer[256];
    struct text missing = TEXT(buffer);
    for (size_t i = 0; i < sizeof REQUIRED / sizeof *REQUIRED; i++) {
        const char *value = getenv(REQUIRED[i].variable);
        if (!(REQUIRED[i].verbs & 1u << call->verb) || (value && *value))
            continue;
        text_string(&missing, missing.length ? "," : "");
        text_string(&missing, REQUIRED[i].variable);
    }
    if (missing.length == 0)
        return 0;
    return fail(call, answer, CODE_ENV, "required env variables [",
                (struct slice){missing.at, missing.length}, "] missing");
}

/* Versions differ in their verbs. */
static int check_version(const struct call *call, struct text *answer)
{
    if (call->verb == VERSION)
        return 0;
    if (version_place(call->version) < 0)
        return fail(call, answer, CODE_VERSION, "incompatible CNI versions: plumbline-gate supports 0.3.0 to 1.1.0, the "
                    "configuration says \"", call->version, "\"");
    if (call->verb == CHECK && !version_reaches(call->version, "0.4.0"))
        return fail(call, answer, CODE_VERSION, "config version does not allow CHECK", SLICE(""), "");
    if ((call->verb == GC || call->verb == STATUS) && !version_reaches(call->version, "1.1.0"))
        return fail(call, answer, CODE_VERSION, "config version does not allow ",
                    slice_of(VERBS[call->verb]), "");
    return 0;
}

/* Whether this is a plain file name. Otherwise, a configuration could choose programs outside CNI_PATH. */
static int is_plugin_name(struct slice name)
{
    return name.length > 0 && name.length < 256 && !memchr(name.at, '/', name.length) && !slice_is(name, ".") &&
           !slice_is(name, "..");
}

/* Finds the plugin to execute. */
static int find_delegate(struct call *call, struct text *answer)
{
    struct json_field inner[] = {{.name = "type"}, {.name = "deviceID"}};
    if (json_object(call->delegate, inner, 2))
        return fail(call, answer, CODE_CONFIG, "\"delegate\" must be an object: the configuration of the plugin to be gated",
                    SLICE(""), "");
    call->plugin = json_plain(inner[0].value);
    call->has_device |= inner[1].value.length > 0;
    if (is_plugin_name(call->plugin))
        return 0;
    return fail(call, answer, CODE_CONFIG, "\"type\" of the delegate must be the name of a plugin, not \"",
                call->plugin, "\"");
}

static int read_conf(struct call *call, struct text *answer)
{
    enum { CNI_VERSION, NAME, PREV, RUNTIME, ARGS, VALID, DELEGATE, DEVICE, COUNT };
    struct json_field field[COUNT] = {
        [CNI_VERSION] = {.name = "cniVersion"},
        [NAME] = {.name = "name"},
        [PREV] = {.name = "prevResult"},
        [RUNTIME] = {.name = "runtimeConfig"},
        [ARGS] = {.name = "args"},
        [VALID] = {.name = "cni.dev/valid-attachments"},
        [DELEGATE] = {.name = "delegate"},
        [DEVICE] = {.name = "deviceID"},
    };
    struct json_field device = {.name = "deviceID"};
    if (json_object(call->conf, field, COUNT))
        return fail(call, answer, CODE_DECODE, "the network configuration on stdin is not a JSON object", SLICE(""), "");
    call->version = json_plain(field[CNI_VERSION].value);
    call->name = field[NAME].value;
    call->prev_result = field[PREV].value;
    call->runtime_config = field[RUNTIME].value;
    call->args = field[ARGS].value;
    call->valid_attachments = field[VALID].value;
    call->delegate = field[DELEGATE].value;
    /* Finds nothing in a runtimeConfig that is not an object. */
    json_object(call->runtime_config, &device, 1);
    call->has_device = field[DEVICE].value.length > 0 || device.value.length > 0;
    /* A runtime that requests the versions may send only its own. */
    return call->verb == VERSION ? 0 : find_delegate(call, answer);
}

int call_read(struct call *call, struct slice conf, struct text *answer)
{
    int status;
    memset(call, 0, sizeof *call);
    call->conf = conf;
    if ((status = read_verb(call, answer)))
        return status;
    /* A runtime may request the versions without any input on stdin. */
    if (call->verb == VERSION && conf.length == 0)
        call->conf = SLICE("{}");
    if ((status = read_conf(call, answer)))
        return status;
    if ((status = check_environment(call, answer)))
        return status;
    return check_version(call, answer);
}

struct slice call_namespace(void)
{
    static const char key[] = "K8S_POD_NAMESPACE=";
    const char *at = getenv("CNI_ARGS");
    while (at) {
        const char *end = strchr(at, ';');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        if (strncmp(at, key, sizeof key - 1) == 0)
            return (struct slice){at + sizeof key - 1, length - (sizeof key - 1)};
        at = end ? end + 1 : 0;
    }
    return (struct slice){0, 0};
}
