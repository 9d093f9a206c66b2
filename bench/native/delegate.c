/* A CNI plugin that does nothing: reads its configuration and prints a result. */
#include <unistd.h>

int main(void)
{
    static const char result[] = "{\"cniVersion\":\"1.0.0\"}";
    char bytes[65536];
    while (read(0, bytes, sizeof bytes) > 0)
        ;
    return write(1, result, sizeof result - 1) < 0;
}
