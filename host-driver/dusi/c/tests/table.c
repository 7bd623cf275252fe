/* Table I from C: each operation with results and refusals, between two engines. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dusi.h"

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);  \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)
#define LIMIT 20000

static uint64_t next_tag = 1;

/* The event of a tag; those of other operations wait in a small store. */
static Dusi_Event event_of(Dusi_Ual *ual, uint64_t tag)
{
    static Dusi_Event kept[64];
    static size_t number;
    for (int tries = 0; tries < 64; tries++) {
        for (size_t i = 0; i < number; i++) {
            if (kept[i].tag == tag) {
                Dusi_Event found = kept[i];
                kept[i] = kept[--number];
                return found;
            }
        }
        int count = Dusi_Wait_All(ual, 0, kept + number, 64 - number, LIMIT);
        CHECK(count > 0);
        number += count;
    }
    CHECK(!"the event comes");
    abort();
}

/* Posts an operation by an expression that uses `tag`, and takes its event. */
#define RUN(ual, call)                    \
    ({                                    \
        uint64_t tag = next_tag++;        \
        CHECK((call) == 0);               \
        event_of(ual, tag);               \
    })
#define ERROR(ual, call) (RUN(ual, call).error)

static struct sockaddr_in at(const char *address, uint16_t port)
{
    struct sockaddr_in made = {.sin_family = AF_INET, .sin_port = htons(port)};
    CHECK(inet_pton(AF_INET, address, &made.sin_addr) == 1);
    return made;
}

static uint32_t socket_of(Dusi_Ual *ual)
{
    uint32_t made;
    CHECK(ERROR(ual, Dusi_Socket(ual, 0, tag, &made)) == 0);
    return made;
}

static int called;
static void call(void *context, const Dusi_Event *event)
{
    CHECK(context == &called);
    CHECK(event->error == 0);
    called++;
}

static volatile sig_atomic_t signalled;
static void on_signal(int number)
{
    (void)number;
    signalled++;
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    Dusi_Ual *server, *client;

    /* Open_Ual */
    CHECK(Dusi_Open_Ual("/nowhere", NULL, &server) == -ENOENT);
    CHECK(Dusi_Open_Ual(NULL, NULL, &server) == -EINVAL);
    Dusi_Sizes odd = {.work = 3, .events = 64, .pool = 4096, .sockets = 8};
    CHECK(Dusi_Open_Ual(arguments[1], &odd, &server) == -EDQUOT);
    Dusi_Sizes sizes = {.work = 64, .events = 256, .pool = 1 << 20, .sockets = 16,
                        .queues = 12, .depth = 8, .anonymous = 128, .chosen = 2};
    CHECK(Dusi_Open_Ual(arguments[1], &sizes, &server) == 0);
    CHECK(Dusi_Open_Ual(arguments[2], NULL, &client) == 0);

    /* Create_EvQ */
    for (int queue = 0; queue < 12; queue++)
        CHECK(Dusi_Create_EvQ(server) == queue);
    CHECK(Dusi_Create_EvQ(server) == -ENOBUFS);
    CHECK(Dusi_Create_EvQ(client) == 0);
    CHECK(Dusi_Create_EvQ(NULL) == -EINVAL);

    /* Socket, Bind, Listen */
    uint32_t listener = socket_of(server), other = socket_of(server);
    struct sockaddr_in any = at("0.0.0.0", 80), own = at("10.77.0.1", 80);
    CHECK(Dusi_Bind(server, listener, &own, 0, 1) == -EADDRNOTAVAIL);
    CHECK(Dusi_Bind(server, listener, NULL, 0, 1) == -EINVAL);
    CHECK(Dusi_Bind(server, listener, &any, 12, 1) == -EINVAL);
    CHECK(ERROR(server, Dusi_Listen(server, listener, 4, 0, tag)) == EOPNOTSUPP);
    CHECK(ERROR(server, Dusi_Bind(server, listener, &any, 0, tag)) == 0);
    CHECK(ERROR(server, Dusi_Bind(server, other, &any, 0, tag)) == EADDRINUSE);
    CHECK(ERROR(server, Dusi_Bind(server, 99, &any, 0, tag)) == EBADF);
    CHECK(ERROR(server, Dusi_Listen(server, listener, 4, 0, tag)) == 0);

    /* Connect */
    uint32_t socket = socket_of(client);
    struct sockaddr_in wrong = at("10.78.0.1", 80), closed = at("10.77.0.1", 81);
    CHECK(ERROR(client, Dusi_Connect(client, socket, &wrong, 0, tag)) == ENETUNREACH);
    CHECK(ERROR(client, Dusi_Connect(client, socket, &closed, 0, tag)) == ECONNREFUSED);
    CHECK(ERROR(client, Dusi_Close(client, socket, 0, tag)) == 0);
    CHECK(ERROR(client, Dusi_Close(client, socket, 0, tag)) == EBADF);
    socket = socket_of(client);

    /* Accept: parent and child. */
    uint32_t child = socket_of(server);
    uint64_t accept = next_tag++;
    CHECK(ERROR(server, Dusi_Accept(server, child, other, 0, tag)) == EOPNOTSUPP);
    CHECK(ERROR(server, Dusi_Accept(server, listener, listener, 0, tag)) == EBADF);
    CHECK(Dusi_Accept(server, listener, child, 0, accept) == 0);
    CHECK(ERROR(client, Dusi_Connect(client, socket, &own, 0, tag)) == 0);
    Dusi_Event event = event_of(server, accept);
    CHECK(event.error == 0 && event.socket == listener && event.child == child);
    CHECK(event.address.sin_addr.s_addr == at("10.77.0.2", 0).sin_addr.s_addr);

    /* Register_Memory, Send, Recv, and the protection tag. */
    Dusi_Region *from, *to;
    CHECK(Dusi_Register_Memory(client, 4096, 7, &from) == 0);
    CHECK(Dusi_Register_Memory(server, 4096, 9, &to) == 0);
    CHECK(Dusi_Register_Memory(server, 1 << 30, 9, &to) == -ENOBUFS);
    char text[] = "sockets without the kernel", back[sizeof text];
    CHECK(Dusi_Write(client, from, 64, text, sizeof text) == 0);
    CHECK(Dusi_Write(client, from, 4095, text, sizeof text) == -ERANGE);
    CHECK(Dusi_Read(client, from, SIZE_MAX, back, 2) == -ERANGE);
    CHECK(Dusi_Send(client, socket, from, 7, 0, 5000, 0, 1) == -ERANGE);
    CHECK(ERROR(client, Dusi_Send(client, socket, from, 8, 64, 8, 0, tag)) == EACCES);
    CHECK(ERROR(server, Dusi_Recv(server, child, to, 8, 0, 8, 0, tag)) == EACCES);
    uint64_t receive = next_tag++;
    CHECK(Dusi_Recv(server, child, to, 9, 0, 4096, 0, receive) == 0);
    CHECK(Dusi_Deregister_Memory(server, to) == -EBUSY);
    event = RUN(client, Dusi_Send(client, socket, from, 7, 64, sizeof text, 0, tag));
    CHECK(event.error == 0 && event.length == sizeof text);
    event = event_of(server, receive);
    CHECK(event.error == 0 && event.length == sizeof text);
    CHECK(Dusi_Read(server, to, 0, back, sizeof back) == 0);
    CHECK(memcmp(text, back, sizeof text) == 0);
    CHECK(ERROR(client, Dusi_Send_In_Place(client, socket, from, 8, 64, 8, 0, tag)) == EACCES);
    event = RUN(client, Dusi_Send_In_Place(client, socket, from, 7, 64, sizeof text, 0, tag));
    CHECK(event.error == 0 && event.length == sizeof text);
    memset(back, 0, sizeof back);
    event = RUN(server, Dusi_Recv(server, child, to, 9, 0, 4096, 0, tag));
    CHECK(event.error == 0 && event.length == sizeof text);
    CHECK(Dusi_Read(server, to, 0, back, sizeof back) == 0);
    CHECK(memcmp(text, back, sizeof text) == 0);

    /* Set_Socket_Ops, Get_Socket_Ops */
    CHECK(Dusi_Set_Socket_Ops(client, socket, 99, 1, 0, 1) == -ENOPROTOOPT);
    CHECK(ERROR(client, Dusi_Set_Socket_Ops(client, socket, DUSI_HOP_LIMIT, 0, 0, tag)) == EINVAL);
    CHECK(ERROR(client, Dusi_Set_Socket_Ops(client, socket, DUSI_HOP_LIMIT, 9, 0, tag)) == 0);
    event = RUN(client, Dusi_Get_Socket_Ops(client, socket, DUSI_HOP_LIMIT, 0, tag));
    CHECK(event.error == 0 && event.value == 9);
    event = RUN(client, Dusi_Get_Socket_Ops(client, socket, DUSI_PEER_ADDRESS, 0, tag));
    CHECK(event.error == 0 && event.address.sin_port == htons(80));

    /* Cancel */
    receive = next_tag++;
    CHECK(Dusi_Recv(server, child, to, 9, 0, 64, 0, receive) == 0);
    event = RUN(server, Dusi_Cancel(server, child, receive, 0, tag));
    CHECK(event.error == 0 && event.length == 1);
    CHECK(event_of(server, receive).error == ECANCELED);

    /* Shutdown, and the end of the stream. */
    CHECK(ERROR(client, Dusi_Shutdown(client, socket, 0, tag)) == 0);
    CHECK(ERROR(client, Dusi_Send(client, socket, from, 7, 0, 8, 0, tag)) == EPIPE);
    event = RUN(server, Dusi_Recv(server, child, to, 9, 0, 64, 0, tag));
    CHECK(event.error == 0 && event.length == 0);
    CHECK(ERROR(server, Dusi_Shutdown(server, child, 0, tag)) == 0);
    CHECK(Dusi_Deregister_Memory(server, to) == 0);

    /* Queues of a socket, each bound to an event queue; the last send, the whole receive. */
    uint32_t bound, peer = socket_of(client);
    CHECK(Dusi_Socket_Bound(server, 3, 12, 0, 1, &bound) == -EINVAL);
    uint64_t made_bound = next_tag++;
    CHECK(Dusi_Socket_Bound(server, 3, 4, 0, made_bound, &bound) == 0);
    CHECK(event_of(server, made_bound).error == 0);
    CHECK(Dusi_Accept(server, listener, bound, DUSI_BOUND, 50) == 0);
    CHECK(ERROR(client, Dusi_Connect(client, peer, &own, 0, tag)) == 0);
    event = event_of(server, 50);
    CHECK(event.error == 0 && event.child == bound);
    CHECK(Dusi_Register_Memory(server, 4096, 0, &to) == 0);
    CHECK(Dusi_Write(server, to, 0, text, sizeof text) == 0);
    CHECK(Dusi_Send_Last(server, bound, to, 0, sizeof text, DUSI_BOUND, 51) == 0);
    CHECK(Dusi_Wait_All(server, 3, &event, 1, LIMIT) == 1 && event.tag == 51 && event.error == 0);
    CHECK(ERROR(server, Dusi_Send_Last(server, bound, to, 0, 1, 0, tag)) == EPIPE);
    Dusi_Region *whole;
    CHECK(Dusi_Register_Memory(client, 4096, 0, &whole) == 0);
    event = RUN(client, Dusi_Recv_Whole(client, peer, whole, 0, 8, 0, tag));
    CHECK(event.error == 0 && event.length == 8);
    event = RUN(client, Dusi_Recv_Whole(client, peer, whole, 8, 4088, 0, tag));
    CHECK(event.error == 0 && event.length == sizeof text - 8);

    /* The anonymous pool: one receive, and one that stays posted. */
    CHECK(Dusi_Recv_Anonymous(server, bound, DUSI_BOUND, 52) == 0);
    CHECK(Dusi_Write(client, whole, 0, text, sizeof text) == 0);
    CHECK(ERROR(client, Dusi_Send(client, peer, whole, 0, 0, sizeof text, 0, tag)) == 0);
    CHECK(Dusi_Wait_All(server, 4, &event, 1, LIMIT) == 1 && event.tag == 52);
    CHECK(event.length == sizeof text && event.buffer < 128 && event.more == 0);
    memset(back, 0, sizeof back);
    CHECK(Dusi_Read_Buffer(server, event.buffer, back, sizeof back) == 0);
    CHECK(memcmp(text, back, sizeof text) == 0);
    CHECK(Dusi_Read_Buffer(server, 128, back, sizeof back) == -ERANGE);
    uint32_t buffer = event.buffer;
    CHECK(ERROR(server, Dusi_Release(server, buffer, 0, tag)) == 0);
    CHECK(ERROR(server, Dusi_Release(server, buffer, 0, tag)) == EBADF);
    CHECK(Dusi_Recv_All(server, bound, DUSI_BOUND, 53) == 0);
    for (int round = 0; round < 3; round++) {
        CHECK(ERROR(client, Dusi_Send(client, peer, whole, 0, 0, 8, 0, tag)) == 0);
        CHECK(Dusi_Wait_All(server, 4, &event, 1, LIMIT) == 1 && event.tag == 53);
        CHECK(event.length == 8 && event.more == 1);
        CHECK(ERROR(server, Dusi_Release(server, event.buffer, 0, tag)) == 0);
    }
    CHECK(ERROR(client, Dusi_Close(client, peer, 0, tag)) == 0);
    CHECK(Dusi_Wait_All(server, 4, &event, 1, LIMIT) == 1 && event.tag == 53);
    CHECK(event.more == 0 && event.buffer == UINT32_MAX);

    /* A region of a memory file of one's own. */
    int file = memfd_create("own", MFD_ALLOW_SEALING);
    CHECK(file >= 0 && ftruncate(file, 4096) == 0);
    Dusi_Region *own_file;
    event = RUN(server, Dusi_Register_File(server, file, 0, 64, 5, 0, tag, &own_file));
    CHECK(event.error == EACCES);
    CHECK(Dusi_Deregister_Memory(server, own_file) == 0);
    CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    event = RUN(server, Dusi_Register_File(server, file, 0, 64, 5, 0, tag, &own_file));
    CHECK(event.error == 0);
    CHECK(Dusi_Register_File(server, -1, 0, 64, 5, 0, 1, &own_file) == -EINVAL);
    CHECK(Dusi_Deregister_Memory(server, own_file) == 0);

    /* An accept that stays posted, and a port that is shared. */
    CHECK(Dusi_Accept_All(server, listener, 5, 54) == 0);
    peer = socket_of(client);
    CHECK(ERROR(client, Dusi_Connect(client, peer, &own, 0, tag)) == 0);
    CHECK(Dusi_Wait_All(server, 5, &event, 1, LIMIT) == 1 && event.tag == 54);
    CHECK(event.error == 0 && event.child == 16 && event.more == 1);
    uint32_t shared = socket_of(server);
    CHECK(ERROR(server, Dusi_Set_Socket_Ops(server, shared, DUSI_SHARE_PORT, 1, 0, tag)) == 0);
    CHECK(ERROR(server, Dusi_Bind(server, shared, &any, 0, tag)) == EADDRINUSE);

    /* EvQ_Num_Events, Done, Wait_All: by time, by a function, by number. */
    CHECK(Dusi_EvQ_Num_Events(server, 1) == 0);
    CHECK(Dusi_Done(server, 1, &event) == 0);
    CHECK(Dusi_Wait_All(server, 1, &event, 1, 20) == 0);
    uint32_t made;
    for (int i = 0; i < 4; i++)
        CHECK(Dusi_Socket(server, 1, 100 + i, &made) == 0);
    for (int i = 0; Dusi_EvQ_Num_Events(server, 1) < 4; i++) {
        CHECK(i < LIMIT);
        poll(NULL, 0, 1);
    }
    CHECK(Dusi_Done(server, 1, &event) == 1 && event.tag == 100);
    CHECK(Dusi_Wait_All(server, 1, &event, 1, 0) == 1 && event.tag == 101);
    CHECK(Dusi_Wait_Call(server, 1, call, &called, 0) == 2 && called == 2);
    CHECK(Dusi_Wait_Call(server, 1, NULL, NULL, 0) == -EINVAL);

    /* An event queue that becomes non-empty: the descriptor, and a signal. */
    struct sigaction action = {.sa_handler = on_signal};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    sigset_t blocked, open;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &blocked, &open) == 0);
    CHECK(Dusi_Set_Signal(server, SIGUSR1) == 0);
    for (int round = 0; round < 50; round++) {
        CHECK(Dusi_Arm(server, 2) == 1);
        CHECK(Dusi_Get_Socket_Ops(server, listener, DUSI_NO_DELAY, 2, round) == 0);
        while (Dusi_EvQ_Num_Events(server, 2) == 0)
            sigsuspend(&open);
        struct pollfd ready = {.fd = Dusi_Descriptor(server), .events = POLLIN};
        CHECK(poll(&ready, 1, LIMIT) == 1);
        CHECK(Dusi_Disarm(server, 2) == 0);
        CHECK(Dusi_Done(server, 2, &event) == 1 && event.tag == (uint64_t)round);
    }
    CHECK(signalled > 0);
    CHECK(Dusi_Set_Signal(server, 0) == 0);

    Dusi_Close_Ual(client);
    Dusi_Close_Ual(server);
    Dusi_Close_Ual(NULL);
    puts("all of Table I");
    return 0;
}
