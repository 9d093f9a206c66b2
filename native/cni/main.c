#include "gate.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static char input[LARGEST];
static char output[LARGEST];

/* Returns the number of bytes read, or -1 if there are too many or reading fails. */
static ssize_t read_input(void)
{
    size_t length = 0;
    char beyond;
    for (;;) {
        size_t room = sizeof input - length;
        ssize_t count = room ? read(0, input + length, room) : read(0, &beyond, 1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 || (count > 0 && room == 0))
            return -1;
        if (count == 0)
            return (ssize_t)length;
        length += (size_t)count;
    }
}

static int write_output(const struct text *answer)
{
    for (size_t written = 0; written < answer->length;) {
        ssize_t count = write(1, answer->at + written, answer->length - written);
        if (count < 0 && errno != EINTR)
            return -1;
        if (count > 0)
            written += (size_t)count;
    }
    return 0;
}

int main(void)
{
    struct text answer = TEXT(output);
    ssize_t length = read_input();
    int status;
    /* If a delegate or a runtime has ended, the write fails with an error instead. */
    signal(SIGPIPE, SIG_IGN);
    if (length < 0)
        status = answer_error(&answer, SLICE(""), CODE_IO, SLICE("the configuration on stdin cannot be read or is larger than a MiB"));
    else
        status = gate_run((struct slice){input, (size_t)length}, &answer);
    return write_output(&answer) ? 1 : status;
}
