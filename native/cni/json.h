#ifndef PLUMBLINE_JSON_H
#define PLUMBLINE_JSON_H

#include "text.h"

/* A member to search for, and its raw value; empty if it is missing. */
struct json_field {
    const char *name;
    struct slice value;
};

/*
 * Checks that the text is exactly one JSON object, and finds some of its members. Of two members with the same name the
 * last counts, as in Go. Names are compared as written: a name with escapes is not found.
 * Returns 0, or -1 if the text is not an object or is nested deeper than 256 levels (RFC 8259).
 */
int json_object(struct slice text, struct json_field *fields, size_t count);

/* Calls `each` for each member of an object that json_object has accepted: its name without quotes, its raw value. */
void json_members(struct slice object, void (*each)(void *context, struct slice name, struct slice value),
                  void *context);

/* The text between a string's quotes, if it is a string without escapes; empty otherwise. */
struct slice json_plain(struct slice value);

/*
 * Whether an array of strings contains the name, or a prefix of it followed by `*`. Only for text that needs no
 * escapes.
 */
int json_has_name(struct slice array, struct slice name);

#endif
