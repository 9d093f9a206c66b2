#ifndef PLUMBLINE_TEXT_H
#define PLUMBLINE_TEXT_H

#include <stddef.h>

/* A reference to bytes elsewhere, without NUL. `at` is null if there are none. */
struct slice {
    const char *at;
    size_t length;
};

/*
 * A buffer of fixed size, because this program allocates no memory. Text that does not fit is dropped and sets
 * `overflow`. Only an environment can be larger than its buffer; all other texts are parts of a call of limited size.
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
/* Appends a JSON string with quotes; bytes that are not UTF-8 become '?'. */
void text_json(struct text *text, struct slice bytes);

#endif
