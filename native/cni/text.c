#include "gate.h"

#include <string.h>

struct slice slice_of(const char *string)
{
    return (struct slice){string, string ? strlen(string) : 0};
}

int slice_is(struct slice slice, const char *string)
{
    return slice.at && slice.length == strlen(string) && memcmp(slice.at, string, slice.length) == 0;
}

void text_clear(struct text *text)
{
    text->length = 0;
}

void text_bytes(struct text *text, struct slice bytes)
{
    if (bytes.length == 0)
        return;
    if (bytes.length > text->size - text->length) {
        text->overflow = 1;
        return;
    }
    memcpy(text->at + text->length, bytes.at, bytes.length);
    text->length += bytes.length;
}

void text_string(struct text *text, const char *string)
{
    text_bytes(text, slice_of(string));
}

void text_number(struct text *text, unsigned long number)
{
    char digits[24];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    text_bytes(text, (struct slice){digits + at, sizeof digits - at});
}

/* Length of the UTF-8 character at the front in bytes, or 0 if it is not valid, overlong or a surrogate. */
static size_t character(const unsigned char *at, size_t left)
{
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90))
        return 0;
    if ((at[0] == 0xED && at[1] > 0x9F) || (at[0] == 0xF4 && at[1] > 0x8F))
        return 0;
    return length;
}

static void text_escaped(struct text *text, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    char escape[] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    text_bytes(text, (struct slice){escape, sizeof escape});
}

void text_json(struct text *text, struct slice bytes)
{
    text_string(text, "\"");
    for (size_t i = 0; i < bytes.length;) {
        const unsigned char *at = (const unsigned char *)bytes.at + i;
        size_t length = character(at, bytes.length - i);
        if (length == 0)
            text_string(text, "?");
        else if (*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7F)
            text_escaped(text, *at);
        else
            text_bytes(text, (struct slice){(const char *)at, length});
        i += length ? length : 1;
    }
    text_string(text, "\"");
}

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
