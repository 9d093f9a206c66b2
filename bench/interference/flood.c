/*
 * Sends UDP packets on an interface, each from and to random ports, so that a switch that hashes over them has never
 * seen the connection and asks its slow path (an upcall).
 *
 * Usage: flood <interface> <packets a second>. Waits for the interface; runs until it is killed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct frame {
    struct ether_header ether;
    struct iphdr ip;
    struct udphdr udp;
    char payload[18];
} __attribute__((packed));

static unsigned short checksum(const void *data, int size)
{
    unsigned sum = 0;
    for (int i = 0; i < size; i += 2) {
        unsigned short word;
        memcpy(&word, (const char *)data + i, 2);
        sum += word;
    }
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum;
}

int main(int argc, char **argv)
{
    static const unsigned char to[6] = {2, 0, 0, 0, 0, 2}, from[6] = {2, 0, 0, 0, 0, 1};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE_IP), .sll_halen = 6};
    struct timespec at, pause = {.tv_nsec = 10 * 1000 * 1000};
    struct frame frame = {0};
    int fd = socket(AF_PACKET, SOCK_RAW, 0), each;
    if (argc != 3 || fd < 0) {
        fputs("Usage: flood <interface> <packets a second>\n", stderr);
        return 2;
    }
    while (!(address.sll_ifindex = if_nametoindex(argv[1])))
        nanosleep(&pause, NULL);
    each = atoi(argv[2]) / 1000;
    memcpy(frame.ether.ether_dhost, to, 6);
    memcpy(frame.ether.ether_shost, from, 6);
    frame.ether.ether_type = htons(ETHERTYPE_IP);
    frame.ip = (struct iphdr){.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};
    frame.ip.tot_len = htons(sizeof frame - sizeof frame.ether);
    frame.ip.saddr = htonl(0x0a000001);
    frame.ip.daddr = htonl(0x0a000002);
    frame.ip.check = checksum(&frame.ip, sizeof frame.ip);
    frame.udp.len = htons(sizeof frame.udp + sizeof frame.payload);
    clock_gettime(CLOCK_MONOTONIC, &at);
    for (;;) {
        for (int i = 0; i < each; i++) {
            frame.udp.source = random();
            frame.udp.dest = random();
            /* Fails until the interface is up, and when its queue is full. */
            (void)!sendto(fd, &frame, sizeof frame, 0, (struct sockaddr *)&address, sizeof address);
        }
        /* Not in step with the kernel's tick, which would sample always the same part of a period. */
        at.tv_nsec += 500 * 1000 + random() % (1000 * 1000);
        if (at.tv_nsec >= 1000 * 1000 * 1000) {
            at.tv_nsec -= 1000 * 1000 * 1000;
            at.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
}
