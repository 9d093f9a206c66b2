#include "gate.h"

#include <string.h>

#define DEEPEST 256

/* The rest of the text. Each function below moves `at` past the part that it reads and returns 0, or returns -1. */
struct cursor {
    const char *at;
    const char *end;
};

static int skip_value(struct cursor *c, int depth);

static int peek(const struct cursor *c)
{
    return c->at < c->end ? (unsigned char)*c->at : -1;
}

static void skip_space(struct cursor *c)
{
    while (peek(c) == ' ' || peek(c) == '\t' || peek(c) == '\n' || peek(c) == '\r')
        c->at++;
}

static int expect(struct cursor *c, int byte)
{
    if (peek(c) != byte)
        return -1;
    c->at++;
    return 0;
}

static int is_hex(int byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

static int skip_escape(struct cursor *c)
{
    int byte = peek(c);
    if (byte <= 0 || !strchr("\"\\/bfnrtu", byte))
        return -1;
    c->at++;
    for (int i = 0; byte == 'u' && i < 4; i++, c->at++)
        if (!is_hex(peek(c)))
            return -1;
    return 0;
}

static int skip_string(struct cursor *c)
{
    if (expect(c, '"'))
        return -1;
    for (int byte; (byte = peek(c)) != '"';) {
        if (byte < 0x20)
            return -1;
        c->at++;
        if (byte == '\\' && skip_escape(c))
            return -1;
    }
    c->at++;
    return 0;
}

static int skip_digits(struct cursor *c)
{
    const char *start = c->at;
    while (peek(c) >= '0' && peek(c) <= '9')
        c->at++;
    return c->at == start ? -1 : 0;
}

static int skip_number(struct cursor *c)
{
    if (peek(c) == '-')
        c->at++;
    if (peek(c) == '0')
        c->at++;
    else if (skip_digits(c))
        return -1;
    if (peek(c) == '.' && (c->at++, skip_digits(c)))
        return -1;
    if (peek(c) != 'e' && peek(c) != 'E')
        return 0;
    c->at++;
    if (peek(c) == '+' || peek(c) == '-')
        c->at++;
    return skip_digits(c);
}

static int skip_word(struct cursor *c, const char *word)
{
    for (; *word; word++)
        if (expect(c, *word))
            return -1;
    return 0;
}

/* Reads one `"name": value` and returns both. */
static int skip_member(struct cursor *c, int depth, struct slice *name, struct slice *value)
{
    skip_space(c);
    const char *start = c->at;
    if (skip_string(c))
        return -1;
    *name = (struct slice){start + 1, (size_t)(c->at - start) - 2};
    skip_space(c);
    if (expect(c, ':'))
        return -1;
    skip_space(c);
    start = c->at;
    if (skip_value(c, depth))
        return -1;
    *value = (struct slice){start, (size_t)(c->at - start)};
    skip_space(c);
    return 0;
}

static int skip_object(struct cursor *c, int depth)
{
    struct slice name, value;
    c->at++;
    skip_space(c);
    if (expect(c, '}') == 0)
        return 0;
    do {
        if (skip_member(c, depth, &name, &value))
            return -1;
    } while (expect(c, ',') == 0);
    return expect(c, '}');
}

static int skip_array(struct cursor *c, int depth)
{
    c->at++;
    skip_space(c);
    if (expect(c, ']') == 0)
        return 0;
    do {
        skip_space(c);
        if (skip_value(c, depth))
            return -1;
        skip_space(c);
    } while (expect(c, ',') == 0);
    return expect(c, ']');
}

static int skip_value(struct cursor *c, int depth)
{
    if (depth == 0)
        return -1;
    switch (peek(c)) {
    case '{':
        return skip_object(c, depth - 1);
    case '[':
        return skip_array(c, depth - 1);
    case '"':
        return skip_string(c);
    case 't':
        return skip_word(c, "true");
    case 'f':
        return skip_word(c, "false");
    case 'n':
        return skip_word(c, "null");
    default:
        return skip_number(c);
    }
}

struct wanted {
    struct json_field *fields;
    size_t count;
};

static void keep_wanted(void *context, struct slice name, struct slice value)
{
    const struct wanted *wanted = context;
    for (size_t i = 0; i < wanted->count; i++)
        if (slice_is(name, wanted->fields[i].name))
            wanted->fields[i].value = value;
}

int json_object(struct slice text, struct json_field *fields, size_t count)
{
    if (text.length == 0)
        return -1;
    struct cursor c = {text.at, text.at + text.length};
    struct wanted wanted = {fields, count};
    skip_space(&c);
    if (peek(&c) != '{' || skip_value(&c, DEEPEST))
        return -1;
    skip_space(&c);
    if (c.at != c.end)
        return -1;
    json_members(text, keep_wanted, &wanted);
    return 0;
}

void json_members(struct slice object, void (*each)(void *context, struct slice name, struct slice value),
                  void *context)
{
    struct cursor c = {object.at, object.at + object.length};
    struct slice name, value;
    skip_space(&c);
    c.at++;
    /* An object without members ends at the first try. */
    do {
        if (skip_member(&c, DEEPEST, &name, &value))
            return;
        each(context, name, value);
    } while (expect(&c, ',') == 0);
}

struct slice json_plain(struct slice value)
{
    if (value.length == 0 || value.at[0] != '"' || memchr(value.at, '\\', value.length))
        return (struct slice){0, 0};
    return (struct slice){value.at + 1, value.length - 2};
}

static int is_named(struct slice plain, struct slice name)
{
    int begins = plain.length > 0 && plain.at[plain.length - 1] == '*';
    size_t length = plain.length - (size_t)begins;
    return (begins ? length <= name.length : length == name.length) && memcmp(plain.at, name.at, length) == 0;
}

int json_has_name(struct slice array, struct slice name)
{
    if (array.length == 0 || array.at[0] != '[' || name.length == 0)
        return 0;
    struct cursor c = {array.at + 1, array.at + array.length};
    for (;;) {
        skip_space(&c);
        const char *start = c.at;
        if (skip_value(&c, DEEPEST))
            return 0;
        struct slice plain = json_plain((struct slice){start, (size_t)(c.at - start)});
        if (is_named(plain, name))
            return 1;
        skip_space(&c);
        if (expect(&c, ','))
            return 0;
    }
}
