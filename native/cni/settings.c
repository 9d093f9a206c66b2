#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "json.h"

#define SETTINGS_FILE "plumbline-gate.conf"

#ifndef SOCKET_PATH
#define SOCKET_PATH "/run/plumbline/gate.sock"
#endif
#ifndef STATE_PATH
#define STATE_PATH "/run/plumbline/gate.state"
#endif

/* Copies an absolute path that fits and adds NUL; ignores any other. */
static void set_path(char *buffer, size_t size, struct slice path)
{
    if (path.length == 0 || path.length >= size || path.at[0] != '/')
        return;
    memcpy(buffer, path.at, path.length);
    buffer[path.length] = 0;
}

/* The path of the settings file. The program may have been called by any name, so the kernel supplies its location. */
static int find_file(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size);
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length <= 0 || (size_t)length + sizeof SETTINGS_FILE > size)
        return -1;
    memcpy(path + length, SETTINGS_FILE, sizeof SETTINGS_FILE);
    return 0;
}

void settings_read(struct settings *settings)
{
    static char path[4096], buffer[4096];
    enum { SOCKET, STATE, ABSENT, COUNT };
    struct json_field field[COUNT] = {
        [SOCKET] = {.name = "socket"}, [STATE] = {.name = "stateFile"}, [ABSENT] = {.name = "whenAbsent"}};
    settings->closed_when_absent = 0;
    set_path(settings->socket, sizeof settings->socket, SLICE(SOCKET_PATH));
    set_path(settings->state, sizeof settings->state, SLICE(STATE_PATH));
    if (find_file(path, sizeof path) == 0 && json_object(read_file(path, buffer, sizeof buffer), field, COUNT) == 0) {
        set_path(settings->socket, sizeof settings->socket, json_plain(field[SOCKET].value));
        set_path(settings->state, sizeof settings->state, json_plain(field[STATE].value));
        settings->closed_when_absent = slice_is(json_plain(field[ABSENT].value), "closed");
    }
    set_path(settings->socket, sizeof settings->socket, slice_of(getenv("PLUMBLINE_GATE_SOCKET")));
    set_path(settings->state, sizeof settings->state, slice_of(getenv("PLUMBLINE_GATE_STATE")));
}
