#include "answer.h"

const char *const SUPPORTED[] = {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0", 0};

int version_place(struct slice version)
{
    for (int i = 0; SUPPORTED[i]; i++)
        if (slice_is(version, SUPPORTED[i]))
            return i;
    return -1;
}

int version_reaches(struct slice version, const char *least)
{
    int place = version_place(version);
    return place >= 0 && place >= version_place(slice_of(least));
}

int answer_error(struct text *answer, struct slice version, unsigned code, struct slice message)
{
    if (message.length > MESSAGE_MAX)
        message.length = MESSAGE_MAX;
    text_clear(answer);
    text_string(answer, "{\"cniVersion\":");
    /* The runtime could not parse an error with an invalid version. */
    text_json(answer, version_place(version) < 0 ? SLICE("1.1.0") : version);
    text_string(answer, ",\"code\":");
    text_number(answer, code);
    text_string(answer, ",\"msg\":");
    text_json(answer, message);
    text_string(answer, "}\n");
    return 1;
}

void answer_versions(struct text *answer)
{
    text_string(answer, "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[");
    for (int i = 0; SUPPORTED[i]; i++) {
        text_string(answer, i ? "," : "");
        text_json(answer, slice_of(SUPPORTED[i]));
    }
    text_string(answer, "]}\n");
}
