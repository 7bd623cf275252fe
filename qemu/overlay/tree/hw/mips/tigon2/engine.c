/*
 * The hardware model of the Tigon II card as a library behind the machine
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "exec/address-spaces.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "system/system.h"
#include <dlfcn.h>
#include "card.h"

#define MESSAGE_BYTES 512

/* Time ------------------------------------------------------------------- */

static int64_t host_now(void *opaque)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void host_arm(void *opaque, int64_t deadline)
{
    Tigon2Card *card = opaque;

    if (deadline == TIGON2_NEVER) {
        timer_del(card->timer);
    } else {
        timer_mod_ns(card->timer, deadline);
    }
}

/* Memory ----------------------------------------------------------------- */

static void host_sram_read(void *opaque, uint32_t address, void *data,
                           uint32_t len)
{
    Tigon2Card *card = opaque;

    memcpy(data, card->sram_data + address, len);
}

/* Not by pointer: code that was translated from there must go. */
static void host_sram_write(void *opaque, uint32_t address, const void *data,
                            uint32_t len)
{
    address_space_write(&address_space_memory, address,
                        MEMTXATTRS_UNSPECIFIED, data, len);
}

static uint32_t host_scratch_read(void *opaque, uint32_t cpu, uint32_t offset)
{
    Tigon2Card *card = opaque;

    return address_space_ldl_be(CPU(card->view[cpu].cpu)->as,
                                TIGON2_SCRATCH_BASE + offset,
                                MEMTXATTRS_UNSPECIFIED, NULL);
}

static void host_scratch_write(void *opaque, uint32_t cpu, uint32_t offset,
                               uint32_t value)
{
    Tigon2Card *card = opaque;

    address_space_stl_be(CPU(card->view[cpu].cpu)->as,
                         TIGON2_SCRATCH_BASE + offset, value,
                         MEMTXATTRS_UNSPECIFIED, NULL);
}

static void do_spill(CPUState *cs, run_on_cpu_data data)
{
    Tigon2CPU *cpu = TIGON2_CPU(cs);
    Tigon2Card *card = cpu->opaque;

    tigon2_memory_spill(&card->view[cpu->index], data.target_ptr);
}

/*
 * By the CPU's own thread, between two translation blocks: code that runs has
 * looked up where its accesses go, and must not find another map there.
 */
static void host_spill(void *opaque, uint32_t cpu, uint32_t offset)
{
    Tigon2Card *card = opaque;

    async_run_on_cpu(CPU(card->view[cpu].cpu), do_spill,
                     RUN_ON_CPU_TARGET_PTR(offset));
}

/* CPUs ------------------------------------------------------------------- */

static uint32_t host_pc(void *opaque, uint32_t cpu)
{
    Tigon2Card *card = opaque;

    return cpu_env(CPU(card->view[cpu].cpu))->active_tc.PC;
}

static uint32_t host_gpr(void *opaque, uint32_t cpu, uint32_t number)
{
    Tigon2Card *card = opaque;

    return cpu_env(CPU(card->view[cpu].cpu))->active_tc.gpr[number & 31];
}

static void host_start(void *opaque, uint32_t cpu, uint32_t pc)
{
    Tigon2Card *card = opaque;

    tigon2_cpu_start(card->view[cpu].cpu, pc);
}

static void host_halt(void *opaque, uint32_t cpu)
{
    Tigon2Card *card = opaque;

    tigon2_cpu_halt(card->view[cpu].cpu);
}

static void host_encoded(void *opaque, uint32_t cpu, uint32_t operands[2])
{
    Tigon2Card *card = opaque;
    uint32_t *encoded = card->view[cpu].cpu->encoded;

    for (int i = 0; i < 2; i++) {
        operands[i] = encoded[i];
        encoded[i] = UINT32_MAX;
    }
}

static void host_settle(void *opaque)
{
    Tigon2Card *card = opaque;

    for (int i = 0; i < TIGON2_CPUS; i++) {
        tigon2_cpu_settle(card->view[i].cpu);
    }
}

void tigon2_engine_fault(Tigon2CPU *cpu, int exception, uint32_t pc,
                         uint32_t address)
{
    Tigon2Card *card = cpu->opaque;
    Tigon2Fault kind;

    switch (exception) {
    case EXCP_BREAK:
        kind = TIGON2_FAULT_BREAK;
        break;
    case EXCP_AdEL:
        kind = TIGON2_FAULT_ADDRESS_LOAD;
        break;
    case EXCP_AdES:
        kind = TIGON2_FAULT_ADDRESS_STORE;
        break;
    case EXCP_IBE:
        kind = TIGON2_FAULT_FETCH;
        break;
    case EXCP_RI:
    case EXCP_CpU:
        kind = TIGON2_FAULT_RESERVED;
        break;
    case EXCP_SYSCALL:
        kind = TIGON2_FAULT_SYSCALL;
        break;
    case EXCP_OVERFLOW:
        kind = TIGON2_FAULT_OVERFLOW;
        break;
    case EXCP_TRAP:
        kind = TIGON2_FAULT_TRAP;
        break;
    default:
        kind = TIGON2_FAULT_OTHER;
        break;
    }
    card->ops.fault(card->model, cpu->index, kind, pc, address);
}

/* Wire ------------------------------------------------------------------- */

/* A netdev that fails says so by -1 and errno, or by the negative number. */
static void note_result(Tigon2Card *card, ssize_t result)
{
    if (result < 0) {
        card->ops.lost(card->model, result == -1 && errno ? errno : -result);
    }
}

static void frame_sent(NetClientState *nc, ssize_t result)
{
    Tigon2Card *card = qemu_get_nic_opaque(nc);

    if (result == 0) {
        /* Thrown away in the queue. */
        card->ops.lost(card->model, 0);
    } else {
        note_result(card, result);
    }
    card->waiting--;
    if (!card->waiting) {
        card->ops.wire_free(card->model);
    }
}

/*
 * QEMU drops frames of a sender that does not want to know when they have
 * left, as soon as many wait.
 */
static bool host_transmit(void *opaque, const void *frame, size_t len)
{
    Tigon2Card *card = opaque;
    ssize_t result;

    errno = 0;
    result = qemu_send_packet_async(qemu_get_queue(card->nic), frame, len,
                                    frame_sent);
    if (result == 0) {
        card->waiting++;
    } else {
        note_result(card, result);
    }
    return !card->waiting;
}

static void host_wire_ready(void *opaque)
{
    Tigon2Card *card = opaque;

    qemu_bh_schedule(card->offer);
}

/* Threads ---------------------------------------------------------------- */

static void host_thread_begin(void *opaque)
{
    rcu_register_thread();
}

static void host_thread_end(void *opaque)
{
    rcu_unregister_thread();
}

static bool host_locked(void *opaque)
{
    return bql_locked();
}

static void host_lock(void *opaque)
{
    bql_lock();
}

static bool host_try_lock(void *opaque)
{
    return bql_try_lock();
}

static void host_unlock(void *opaque)
{
    bql_unlock();
}

static void host_call_errands(void *opaque)
{
    Tigon2Card *card = opaque;

    qemu_bh_schedule(card->errands);
}

/* Life ------------------------------------------------------------------- */

static void engine_exit(Notifier *notifier, void *data)
{
    Tigon2Card *card = container_of(notifier, Tigon2Card, exit);
    bool locked = bql_locked();

    /* The model's threads may need the lock to come to their end. */
    if (locked) {
        bql_unlock();
    }
    card->ops.end(card->model);
    if (locked) {
        bql_lock();
    }
}

bool tigon2_engine_load(Tigon2Card *card, Error **errp)
{
    static const uint8_t unset[6];
    char message[MESSAGE_BYTES] = "";
    const uint8_t *mac = card->conf.macaddr.a;
    Tigon2Config config = {
        .socket = card->socket_path,
        .board = card->board_path,
        .eeprom = card->eeprom_path,
        .mac = memcmp(mac, unset, sizeof(unset)) ? mac : NULL,
    };
    Tigon2ModelNew new_model;
    void *library;

    if (!card->model_path) {
        error_setg(errp, "tigon2: no hardware model, give -M tigon2,model=FILE");
        return false;
    }
    library = dlopen(card->model_path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        error_setg(errp, "tigon2: hardware model: %s", dlerror());
        return false;
    }
    new_model = (Tigon2ModelNew)dlsym(library, TIGON2_MODEL_SYMBOL);
    if (!new_model) {
        error_setg(errp, "tigon2: %s is not a hardware model",
                   card->model_path);
        return false;
    }

    card->host = (Tigon2HostOps) {
        .abi = TIGON2_ABI,
        .bytes = sizeof(Tigon2HostOps),
        .card = card,
        .now = host_now,
        .arm = host_arm,
        .sram_read = host_sram_read,
        .sram_write = host_sram_write,
        .scratch_read = host_scratch_read,
        .scratch_write = host_scratch_write,
        .spill = host_spill,
        .pc = host_pc,
        .gpr = host_gpr,
        .start = host_start,
        .halt = host_halt,
        .encoded = host_encoded,
        .settle = host_settle,
        .transmit = host_transmit,
        .wire_ready = host_wire_ready,
        .thread_begin = host_thread_begin,
        .thread_end = host_thread_end,
        .locked = host_locked,
        .lock = host_lock,
        .try_lock = host_try_lock,
        .unlock = host_unlock,
        .call_errands = host_call_errands,
    };
    card->model = new_model(&card->host, &config, &card->ops, &card->geometry,
                            message, sizeof(message));
    if (!card->model) {
        error_setg(errp, "tigon2: %s", message);
        return false;
    }
    if (card->ops.abi != TIGON2_ABI ||
        card->ops.bytes != sizeof(Tigon2ModelOps)) {
        error_setg(errp, "tigon2: %s is for ABI %u, this machine for ABI %u",
                   card->model_path, card->ops.abi, TIGON2_ABI);
        return false;
    }
    return true;
}

void tigon2_engine_begin(Tigon2Card *card)
{
    card->ops.begin(card->model);
    card->exit.notify = engine_exit;
    qemu_add_exit_notifier(&card->exit);
}
