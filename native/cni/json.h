#ifndef PLUMBLINE_JSON_H
#define PLUMBLINE_JSON_H

#include "text.h"

/* A member that is looked for, and its value as it stands in the text; no bytes where there is none. */
struct json_field {
    const char *name;
    struct slice value;
};

/*
 * Checks that the text is one JSON object and nothing else, and finds some of its members. Of two with one name the
 * last counts, as in Go. Names are compared as they are written: one with escapes in it is not found.
 * Returns 0, or -1 if the text is no object or is nested deeper than 256 levels (RFC 8259).
 */
int json_object(struct slice text, struct json_field *fields, size_t count);

/* Calls back for each member of an object that json_object has accepted: its name without quotes, its raw value. */
void json_members(struct slice object, void (*each)(void *context, struct slice name, struct slice value),
                  void *context);

/* What is between a string's quotes, if it is a string without escapes; no bytes otherwise. */
struct slice json_plain(struct slice value);

/* Whether a value is an object. */
int json_is_object(struct slice value);

/*
 * Whether an array of strings has that one in it, or the beginning of it with a `*` behind; only for text that needs no
 * escapes.
 */
int json_has_name(struct slice array, struct slice name);

#endif
