/* Asynchronous sockets over a packet processing engine.
 *
 * Made by cbindgen from host-driver/dusi/c/src; a test compares it. Every function that can fail
 * returns 0 or more, or a negative errno. An operation that was posted has one event, whose
 * `error` is 0 or an errno. */

#ifndef DUSI_H
#define DUSI_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

/**
 * In place of an event queue: the one that the socket's queue is bound to.
 */
#define DUSI_BOUND 65534

/**
 * 1: small segments are not held back.
 */
#define DUSI_NO_DELAY 1

/**
 * Milliseconds between probes of a silent peer; 0: none.
 */
#define DUSI_KEEP_ALIVE 2

/**
 * Milliseconds after which a peer that answers nothing is given up; 0: never.
 */
#define DUSI_USER_TIMEOUT 3

/**
 * Milliseconds after which a connect fails.
 */
#define DUSI_CONNECT_TIMEOUT 4

/**
 * Hop limit of the packets.
 */
#define DUSI_HOP_LIMIT 5

/**
 * Bytes of the send buffer.
 */
#define DUSI_SEND_BUFFER 6

/**
 * Bytes of the receive buffer.
 */
#define DUSI_RECEIVE_BUFFER 7

/**
 * Congestion control: 0 none, 1 Reno, 2 CUBIC.
 */
#define DUSI_CONGESTION 8

/**
 * Own address: the event's `address`.
 */
#define DUSI_LOCAL_ADDRESS 9

/**
 * The peer's address: the event's `address`.
 */
#define DUSI_PEER_ADDRESS 10

/**
 * Bytes received that no operation has taken.
 */
#define DUSI_UNREAD 11

/**
 * Bytes that the peer has not acknowledged.
 */
#define DUSI_UNACKNOWLEDGED 12

/**
 * 1: sockets of the same user that have set it may listen on the same port.
 */
#define DUSI_SHARE_PORT 13

/**
 * A registered region.
 */
typedef struct Dusi_Region Dusi_Region;

/**
 * An attachment to an engine.
 */
typedef struct Dusi_Ual Dusi_Ual;

/**
 * How large the queues are; work and events are powers of two.
 */
typedef struct Dusi_Sizes {
  /**
   * Operations that may be posted and not taken.
   */
  uint32_t work;
  /**
   * Operations that may be under way, by event queue.
   */
  uint32_t events;
  /**
   * Bytes of memory to register.
   */
  uint32_t pool;
  /**
   * Sockets.
   */
  uint32_t sockets;
  /**
   * Event queues; 0 for the usual number.
   */
  uint32_t queues;
  /**
   * Operations that each queue of a socket holds, a power of two; 0 for the usual number.
   */
  uint32_t depth;
  /**
   * Buffers of the anonymous pool; 0 for the usual number.
   */
  uint32_t anonymous;
  /**
   * Sockets that the engine may name, for `Dusi_Accept_All`.
   */
  uint32_t chosen;
} Dusi_Sizes;

/**
 * The end of an operation.
 */
typedef struct Dusi_Event {
  /**
   * The tag of the call.
   */
  uint64_t tag;
  /**
   * 0, or an errno.
   */
  int32_t error;
  /**
   * The socket; of an accept, the listening one.
   */
  uint32_t socket;
  /**
   * Of an accept, the connection.
   */
  uint32_t child;
  /**
   * Bytes sent or received; of a cancel, the operations cancelled.
   */
  uint32_t length;
  /**
   * Of a receive into the anonymous pool, the buffer; else `UINT32_MAX`.
   */
  uint32_t buffer;
  /**
   * 1: the operation is still posted, and more events of it will come.
   */
  uint32_t more;
  /**
   * Of a question for an option, its value.
   */
  uint64_t value;
  /**
   * Of an accept, and of a question for an address.
   */
  struct sockaddr_in address;
} Dusi_Event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Attaches to the engine that listens at `path`. Without `sizes` the usual ones are taken.
 */
int Dusi_Open_Ual(const char *path, const struct Dusi_Sizes *sizes, struct Dusi_Ual **ual);

/**
 * Ends an attachment: all that it had goes back to the engine.
 */
void Dusi_Close_Ual(struct Dusi_Ual *ual);

/**
 * Makes an event queue; its number, from 0.
 */
int Dusi_Create_EvQ(struct Dusi_Ual *ual);

/**
 * A descriptor for poll and epoll: readable when an armed event queue has got an event, and when
 * the engine has ended. It is the attachment's; do not read or close it.
 */
int Dusi_Descriptor(struct Dusi_Ual *ual);

/**
 * Sends this process a signal, too, whenever the descriptor becomes readable; 0 for none.
 */
int Dusi_Set_Signal(struct Dusi_Ual *ual, int signal);

/**
 * Arms an event queue. 1 if it has no event, so that the caller may sleep; 0 if it has one.
 */
int Dusi_Arm(struct Dusi_Ual *ual, uint16_t event_queue);

/**
 * The caller is awake. 0, or an error if the engine has ended.
 */
int Dusi_Disarm(struct Dusi_Ual *ual, uint16_t event_queue);

/**
 * Writes all events that there are, at most `room`, and gives their number. If there is none, it
 * waits for the first one, at most so many milliseconds, or for ever if they are negative.
 */
int Dusi_Wait_All(struct Dusi_Ual *ual,
                  uint16_t event_queue,
                  struct Dusi_Event *events,
                  uint32_t room,
                  int milliseconds);

/**
 * As `Dusi_Wait_All`, and calls a function for each event.
 */
int Dusi_Wait_Call(struct Dusi_Ual *ual,
                   uint16_t event_queue,
                   void (*call)(void *context, const struct Dusi_Event *event),
                   void *context,
                   int milliseconds);

/**
 * The number of events that wait.
 */
int Dusi_EvQ_Num_Events(struct Dusi_Ual *ual, uint16_t event_queue);

/**
 * Writes the oldest event, if there is one: 1, else 0. It never waits.
 */
int Dusi_Done(struct Dusi_Ual *ual, uint16_t event_queue, struct Dusi_Event *out);

/**
 * Registers memory for payload, with a protection tag that operations must show.
 */
int Dusi_Register_Memory(struct Dusi_Ual *ual,
                         uintptr_t bytes,
                         uint32_t protection_tag,
                         struct Dusi_Region **region);

/**
 * Ends a region; `-EBUSY`, and it stays, if an operation uses it.
 */
int Dusi_Deregister_Memory(struct Dusi_Ual *ual, struct Dusi_Region *region);

/**
 * Registers bytes of the application's own memory file, a memfd that is sealed against shrinking
 * and growing, from an offset on that is a multiple of 8. The region may be used once the event
 * has come.
 */
int Dusi_Register_File(struct Dusi_Ual *ual,
                       int file,
                       uint32_t offset,
                       uint32_t length,
                       uint32_t protection_tag,
                       uint16_t event_queue,
                       uint64_t tag,
                       struct Dusi_Region **region);

/**
 * Gives a buffer of the anonymous pool back.
 */
int Dusi_Release(struct Dusi_Ual *ual, uint32_t buffer, uint16_t event_queue, uint64_t tag);

/**
 * Reads received bytes of a buffer of the anonymous pool.
 */
int Dusi_Read_Buffer(struct Dusi_Ual *ual, uint32_t buffer, void *bytes, uint32_t length);

/**
 * Writes bytes into a region, from an offset on that is a multiple of 8.
 */
int Dusi_Write(struct Dusi_Ual *ual,
               const struct Dusi_Region *region,
               uintptr_t offset,
               const void *bytes,
               uintptr_t length);

/**
 * Reads bytes of a region, from an offset on that is a multiple of 8.
 */
int Dusi_Read(struct Dusi_Ual *ual,
              const struct Dusi_Region *region,
              uintptr_t offset,
              void *bytes,
              uintptr_t length);

/**
 * Makes a socket whose queues are bound to the event queue of this call, and writes its handle;
 * operations on it may be posted at once.
 */
int Dusi_Socket(struct Dusi_Ual *ual, uint16_t event_queue, uint64_t tag, uint32_t *socket);

/**
 * Makes a socket whose transmit queue and receive queue are bound to event queues, the same or
 * not, and writes its handle.
 */
int Dusi_Socket_Bound(struct Dusi_Ual *ual,
                      uint16_t transmit_queue,
                      uint16_t receive_queue,
                      uint16_t event_queue,
                      uint64_t tag,
                      uint32_t *socket);

/**
 * Gives a socket its local port. The engine has one address: the one given must be `INADDR_ANY`.
 */
int Dusi_Bind(struct Dusi_Ual *ual,
              uint32_t socket,
              const struct sockaddr_in *local,
              uint16_t event_queue,
              uint64_t tag);

/**
 * Listens; at most `backlog` connections wait.
 */
int Dusi_Listen(struct Dusi_Ual *ual,
                uint32_t socket,
                uint32_t backlog,
                uint16_t event_queue,
                uint64_t tag);

/**
 * Takes the next connection of the listening `parent` as the socket `child`, made before.
 */
int Dusi_Accept(struct Dusi_Ual *ual,
                uint32_t parent,
                uint32_t child,
                uint16_t event_queue,
                uint64_t tag);

/**
 * Takes all connections of the listening `parent` that come, each as a socket of the engine's
 * choice, while the events say that there will be more.
 */
int Dusi_Accept_All(struct Dusi_Ual *ual, uint32_t parent, uint16_t event_queue, uint64_t tag);

/**
 * Connects.
 */
int Dusi_Connect(struct Dusi_Ual *ual,
                 uint32_t socket,
                 const struct sockaddr_in *peer,
                 uint16_t event_queue,
                 uint64_t tag);

/**
 * Sends bytes of a region, which stay as they are until the event.
 */
int Dusi_Send(struct Dusi_Ual *ual,
              uint32_t socket,
              const struct Dusi_Region *region,
              uint32_t protection_tag,
              uintptr_t offset,
              uintptr_t length,
              uint16_t event_queue,
              uint64_t tag);

/**
 * As `Dusi_Send`, without a copy: its event comes when the peer has acknowledged the bytes.
 */
int Dusi_Send_In_Place(struct Dusi_Ual *ual,
                       uint32_t socket,
                       const struct Dusi_Region *region,
                       uint32_t protection_tag,
                       uintptr_t offset,
                       uintptr_t length,
                       uint16_t event_queue,
                       uint64_t tag);

/**
 * Receives what there is into a region; the end of the stream is 0 bytes.
 */
int Dusi_Recv(struct Dusi_Ual *ual,
              uint32_t socket,
              const struct Dusi_Region *region,
              uint32_t protection_tag,
              uintptr_t offset,
              uintptr_t length,
              uint16_t event_queue,
              uint64_t tag);

/**
 * Receives a whole range of a region; fewer bytes only at the end of the stream.
 */
int Dusi_Recv_Whole(struct Dusi_Ual *ual,
                    uint32_t socket,
                    const struct Dusi_Region *region,
                    uintptr_t offset,
                    uintptr_t length,
                    uint16_t event_queue,
                    uint64_t tag);

/**
 * Sends bytes of a region, and ends the sending direction behind them.
 */
int Dusi_Send_Last(struct Dusi_Ual *ual,
                   uint32_t socket,
                   const struct Dusi_Region *region,
                   uintptr_t offset,
                   uintptr_t length,
                   uint16_t event_queue,
                   uint64_t tag);

/**
 * Receives what there is into a buffer of the anonymous pool: the event's `buffer`.
 */
int Dusi_Recv_Anonymous(struct Dusi_Ual *ual, uint32_t socket, uint16_t event_queue, uint64_t tag);

/**
 * Receives all that comes, into one buffer of the anonymous pool after another, while the events
 * say that there will be more.
 */
int Dusi_Recv_All(struct Dusi_Ual *ual, uint32_t socket, uint16_t event_queue, uint64_t tag);

/**
 * Ends the sending direction after what was posted.
 */
int Dusi_Shutdown(struct Dusi_Ual *ual, uint32_t socket, uint16_t event_queue, uint64_t tag);

/**
 * Frees a socket: its operations are cancelled, and a connection that is not shut down is reset.
 */
int Dusi_Close(struct Dusi_Ual *ual, uint32_t socket, uint16_t event_queue, uint64_t tag);

/**
 * Cancels the operations of a socket that were posted with the tag `cancelled`.
 */
int Dusi_Cancel(struct Dusi_Ual *ual,
                uint32_t socket,
                uint64_t cancelled,
                uint16_t event_queue,
                uint64_t tag);

/**
 * Sets an option.
 */
int Dusi_Set_Socket_Ops(struct Dusi_Ual *ual,
                        uint32_t socket,
                        uint32_t number,
                        uint32_t value,
                        uint16_t event_queue,
                        uint64_t tag);

/**
 * Asks for an option: the event's `value`, or `address`.
 */
int Dusi_Get_Socket_Ops(struct Dusi_Ual *ual,
                        uint32_t socket,
                        uint32_t number,
                        uint16_t event_queue,
                        uint64_t tag);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DUSI_H */
