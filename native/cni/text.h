#ifndef PLUMBLINE_TEXT_H
#define PLUMBLINE_TEXT_H

#include <stddef.h>

/* Bytes somewhere else, not ended by NUL. `at` is null where there are none. */
struct slice {
    const char *at;
    size_t length;
};

/*
 * A buffer of fixed size that is appended to. What does not fit sets `overflow` and is dropped; whoever sends the text
 * on looks at it first. There is no allocation in this program.
 */
struct text {
    char *at;
    size_t size;
    size_t length;
    int overflow;
};

#define SLICE(literal) ((struct slice){literal, sizeof(literal) - 1})
#define TEXT(array) ((struct text){array, sizeof(array), 0, 0})

struct slice slice_of(const char *string);
int slice_is(struct slice slice, const char *string);

void text_clear(struct text *text);
void text_bytes(struct text *text, struct slice bytes);
void text_string(struct text *text, const char *string);
void text_number(struct text *text, unsigned long number);
/* A JSON string, quotes included; what is not UTF-8 becomes '?'. */
void text_json(struct text *text, struct slice bytes);
/* The text as a string; the last byte of the buffer is given up for it if need be. */
const char *text_ended(struct text *text);

#endif
