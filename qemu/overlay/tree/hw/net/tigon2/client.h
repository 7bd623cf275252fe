/*
 * The C interface between the device "tigon2-vfio-user" and its vfio-user client
 *
 * The client is a shared library, opened when the device is made.  It exports
 * one symbol, TIGON2_CLIENT_SYMBOL, of type Tigon2ClientOpen.
 *
 * Every call in either direction is made with QEMU's big lock held.  A call of
 * Tigon2ClientHost comes out of a call of the client, and calls none of
 * Tigon2ClientOps itself.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_NET_TIGON2_CLIENT_H
#define HW_NET_TIGON2_CLIENT_H

/* Both sides refuse each other if this differs. */
#define TIGON2_CLIENT_ABI 2

#define TIGON2_CLIENT_SYMBOL "tigon2_client_open"

#define TIGON2_CONFIG_BYTES 256

/* What the command line says. */
typedef struct Tigon2ClientConfig {
    const char *socket;                 /* path of the vfio-user socket */
    uint32_t timeout_ms;                /* for each request */
} Tigon2ClientConfig;

/* What the card is like when it is first looked at. */
typedef struct Tigon2ClientCard {
    uint64_t bar_bytes;                 /* of BAR 0, a power of two */
    uint8_t config[TIGON2_CONFIG_BYTES];
} Tigon2ClientCard;

/* What the device offers. */
typedef struct Tigon2ClientHost {
    uint32_t abi;
    uint32_t bytes;                     /* of this structure */
    void *device;                       /* first argument of all below */

    /*
     * The guest's memory, for ranges that were mapped without a file.  False
     * if there is no memory.
     */
    bool (*dma_read)(void *device, uint64_t address, void *data, uint32_t len);
    bool (*dma_write)(void *device, uint64_t address, const void *data,
                      uint32_t len);
    /* The card is gone for good; comes once, with one line that says why. */
    void (*gone)(void *device, const char *message);
    /* The card refused something and goes on. */
    void (*refused)(void *device, const char *message);
} Tigon2ClientHost;

/*
 * What the client offers; the first argument of all is the client.  False
 * means that the card refused it or is gone.
 */
typedef struct Tigon2ClientOps {
    uint32_t abi;
    uint32_t bytes;                     /* of this structure */

    void (*close)(void *client);
    /* Readable when the card wants something, or is gone: call serve then. */
    int (*descriptor)(void *client);
    void (*serve)(void *client);

    bool (*config_read)(void *client, uint32_t offset, void *data,
                        uint32_t len);
    void (*config_write)(void *client, uint32_t offset, const void *data,
                         uint32_t len);
    /*
     * With unmask, the pin may signal again after the access.  A write does
     * not wait for the card.
     */
    bool (*bar_read)(void *client, uint64_t offset, void *data, uint32_t len,
                     bool unmask);
    void (*bar_write)(void *client, uint64_t offset, const void *data,
                      uint32_t len, bool unmask);

    /* The guest's memory; fd is negative where it is in no shared file. */
    bool (*map)(void *client, uint64_t address, uint64_t len, bool writable,
                int fd, uint64_t offset);
    bool (*unmap)(void *client, uint64_t address, uint64_t len);

    /* The pin adds 1 to this eventfd, and is then masked until an unmask. */
    bool (*connect)(void *client, int eventfd);
    /* Like power-on.  Also unmasks the pin. */
    bool (*reset)(void *client);

    /*
     * What went wrong or had to wait, counted, as one line of text.  Alone of
     * all it may be called from within another call.
     */
    void (*counts)(void *client, char *text, size_t bytes);
} Tigon2ClientOps;

/*
 * Connect to a card.  NULL with one line in message if there is none, or if
 * the ABI does not suit.
 */
typedef void *(*Tigon2ClientOpen)(const Tigon2ClientHost *host,
                                  const Tigon2ClientConfig *config,
                                  Tigon2ClientOps *ops,
                                  Tigon2ClientCard *card,
                                  char *message, size_t bytes);

#endif
