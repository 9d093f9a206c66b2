#include "run-directory.h"

#include <stdlib.h>
#include <string.h>

#define RUN_DIRECTORY "/run/plumbline"

void run_path(char path[RUN_PATH_MAX], const char *name)
{
    const char *directory = getenv("PLUMBLINE_RUN_DIR");
    if (!directory || directory[0] != '/' || strlen(directory) + 1 + strlen(name) >= RUN_PATH_MAX)
        directory = RUN_DIRECTORY;
    strcpy(path, directory);
    strcat(path, "/");
    strcat(path, name);
}
