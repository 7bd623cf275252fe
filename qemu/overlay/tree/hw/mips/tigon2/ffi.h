/*
 * The C interface between the machine "tigon2" and its hardware model
 *
 * The model is a shared library, opened when the machine is made.  It exports
 * one symbol, TIGON2_MODEL_SYMBOL, of type Tigon2ModelNew.
 *
 * Every call in either direction is made with QEMU's big lock held, except
 * where the comment says otherwise.  "No lock": by any thread, with or without
 * the big lock, also while the model holds a lock of its own.  A model takes
 * the big lock only while it holds none of its own, and never calls back into
 * QEMU's network layer while it does: a frame may come back before the call
 * returns.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_MIPS_TIGON2_FFI_H
#define HW_MIPS_TIGON2_FFI_H

/* Both sides refuse each other if this differs. */
#define TIGON2_ABI 7

#define TIGON2_MODEL_SYMBOL "tigon2_model_new"

#define TIGON2_CPUS 2

#define TIGON2_REGISTERS 256

/* No deadline, for Tigon2HostOps.arm. */
#define TIGON2_NEVER INT64_MAX

/* Why a CPU stopped by itself. */
typedef enum Tigon2Fault {
    TIGON2_FAULT_BREAK = 0,
    TIGON2_FAULT_ADDRESS_LOAD = 1,      /* unaligned load or fetch */
    TIGON2_FAULT_ADDRESS_STORE = 2,     /* unaligned store */
    TIGON2_FAULT_FETCH = 3,             /* no memory where the PC points */
    TIGON2_FAULT_RESERVED = 4,          /* no such instruction */
    TIGON2_FAULT_SYSCALL = 5,
    TIGON2_FAULT_OVERFLOW = 6,
    TIGON2_FAULT_TRAP = 7,
    TIGON2_FAULT_OTHER = 8,
} Tigon2Fault;

/* What the command line says; a string is NULL if it says nothing. */
typedef struct Tigon2Config {
    const char *socket;                 /* path of the vfio-user socket */
    const char *board;                  /* board file */
    const char *eeprom;                 /* serial EEPROM's image */
    const uint8_t *mac;                 /* six bytes */
} Tigon2Config;

/* Sizes that the board file decides. */
typedef struct Tigon2Geometry {
    uint32_t sram_bytes;                /* a power of two, 4 KB to 8 MB */
    uint32_t scratch_bytes[TIGON2_CPUS];
    uint32_t core_hz;
} Tigon2Geometry;

/* What QEMU offers. */
typedef struct Tigon2HostOps {
    uint32_t abi;
    uint32_t bytes;                     /* of this structure */
    void *card;                         /* first argument of all below */

    /* Nanoseconds of the virtual clock.  No lock. */
    int64_t (*now)(void *card);
    /* Call Tigon2ModelOps.timer at this time; the last call counts.  No lock. */
    void (*arm)(void *card, int64_t deadline);

    /* Whole ranges inside the installed SRAM.  No lock. */
    void (*sram_read)(void *card, uint32_t address, void *data, uint32_t len);
    void (*sram_write)(void *card, uint32_t address, const void *data,
                       uint32_t len);
    /* A word of a scratch pad; the offset is a multiple of 4 in it.  No lock. */
    uint32_t (*scratch_read)(void *card, uint32_t cpu, uint32_t offset);
    void (*scratch_write)(void *card, uint32_t cpu, uint32_t offset,
                          uint32_t value);
    /*
     * SRAM offset that the start of a CPU's spill window shows, a multiple of
     * 4 KB.  Takes effect at the CPU's next instruction boundary.
     */
    void (*spill)(void *card, uint32_t cpu, uint32_t offset);

    /*
     * Exact while the CPU is halted, or itself makes the call in an exact
     * access (see Tigon2ModelOps).  No lock.
     */
    uint32_t (*pc)(void *card, uint32_t cpu);
    uint32_t (*gpr)(void *card, uint32_t cpu, uint32_t number);
    /* These take effect at the CPU's next instruction boundary. */
    void (*start)(void *card, uint32_t cpu, uint32_t pc);
    void (*halt)(void *card, uint32_t cpu);
    /*
     * Operands of the last PRI that the CPU has executed since the last call;
     * all ones if it has executed none.  No lock, but by that CPU's own thread
     * only, or while that is stopped.
     */
    void (*encoded)(void *card, uint32_t cpu, uint32_t operands[2]);
    /*
     * Wait until starts and halts that were asked for have happened.  Lets go
     * of the big lock meanwhile; not for a CPU's own thread.
     */
    void (*settle)(void *card);

    /*
     * False: taken, but the wire is full until wire_free.  A frame that was
     * taken may get lost, at once or later: then Tigon2ModelOps.lost is called.
     */
    bool (*transmit)(void *card, const void *frame, size_t len);
    /*
     * The card has room again after it had refused a frame: offer the frames
     * again that wait, soon, and never from within a call of the model.  No
     * lock.
     */
    void (*wire_ready)(void *card);

    /* For threads of the model; called without the big lock. */
    void (*thread_begin)(void *card);
    void (*thread_end)(void *card);

    /* Whether this thread holds the big lock.  No lock. */
    bool (*locked)(void *card);
    /* Called without the big lock; try_lock does not wait. */
    void (*lock)(void *card);
    bool (*try_lock)(void *card);
    void (*unlock)(void *card);
    /* Call Tigon2ModelOps.errands soon.  No lock. */
    void (*call_errands)(void *card);
} Tigon2HostOps;

/* What the model offers; the first argument of all is the model. */
typedef struct Tigon2ModelOps {
    uint32_t abi;
    uint32_t bytes;                     /* of this structure */

    /* The card is complete: the next power_on opens it to its clients. */
    void (*begin)(void *model);
    /* Stop threads, remove the socket.  Called without the big lock. */
    void (*end)(void *model);

    void (*power_on)(void *model);
    /* What waited for the big lock. */
    void (*errands)(void *model);

    /*
     * A bit for each register by its number.  An access to one of these is
     * exact: it ends its translation block, so that what follows from it
     * follows before the next instruction.  Accesses to all others are made
     * inside of translation blocks, and without the big lock.
     */
    uint64_t exact[TIGON2_REGISTERS / 64];
    /*
     * Registers; the offset is a multiple of 4 below 0x400.  No lock, like
     * undefined.  A CPU that reads its event register without the big lock may
     * be kept waiting, for some milliseconds at most.
     */
    uint32_t (*read)(void *model, uint32_t cpu, uint32_t offset);
    void (*write)(void *model, uint32_t cpu, uint32_t offset, uint32_t value);
    /* An access at which nothing answers. */
    void (*undefined)(void *model, uint32_t cpu, uint32_t address,
                      uint32_t size, bool write, uint32_t value);
    /* The CPU has stopped; kind is a Tigon2Fault. */
    void (*fault)(void *model, uint32_t cpu, uint32_t kind, uint32_t pc,
                  uint32_t address);
    void (*timer)(void *model);

    bool (*can_receive)(void *model);
    /* False: the card keeps the wire waiting until wire_ready. */
    bool (*receive)(void *model, const uint8_t *frame, size_t len);
    void (*cable)(void *model, bool plugged);
    /* All frames that the wire was too full for have left. */
    void (*wire_free)(void *model);
    /*
     * The wire has lost a frame of the card: an errno, or 0 if it was thrown
     * away because the machine stopped.  Also from within transmit.
     */
    void (*lost)(void *model, int32_t error);

    /* Properties: text for text, or false and one line in text. */
    bool (*get)(void *model, const char *name, char *text, size_t bytes);
    bool (*set)(void *model, const char *name, const char *value,
                char *text, size_t bytes);
} Tigon2ModelOps;

/*
 * Make a model that is not running yet.  NULL with one line in message if
 * the configuration or the ABI does not suit.
 */
typedef void *(*Tigon2ModelNew)(const Tigon2HostOps *host,
                                const Tigon2Config *config,
                                Tigon2ModelOps *ops,
                                Tigon2Geometry *geometry,
                                char *message, size_t bytes);

#endif
