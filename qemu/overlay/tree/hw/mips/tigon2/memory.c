/*
 * What the CPUs of the Tigon II see in memory
 *
 *   0x00000000  SRAM, again and again           shared
 *   0x00800000  spill window: SRAM at an offset a CPU
 *   0x00c00000  scratch pad                     a CPU, private
 *   0xc0000000  registers                       shared, but know who asks
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "exec/address-spaces.h"
#include "hw/core/cpu.h"
#include "qemu/units.h"
#include "system/cpu-timers.h"
#include "card.h"

/* Registers -------------------------------------------------------------- */

static uint64_t registers_read(void *opaque, hwaddr offset, unsigned size)
{
    Tigon2View *view = opaque;
    Tigon2Card *card = view->card;

    if (size != 4) {
        card->ops.undefined(card->model, view->index,
                            TIGON2_REGISTERS_BASE + offset, size, false, 0);
        return 0;
    }
    return card->ops.read(card->model, view->index, offset);
}

static void registers_write(void *opaque, hwaddr offset, uint64_t value,
                            unsigned size)
{
    Tigon2View *view = opaque;
    Tigon2Card *card = view->card;

    if (size != 4) {
        card->ops.undefined(card->model, view->index,
                            TIGON2_REGISTERS_BASE + offset, size, true, value);
        return;
    }
    card->ops.write(card->model, view->index, offset, value);
}

/* With icount every access has to be at the end of its translation block. */
static bool registers_unlocked(void *opaque, hwaddr offset)
{
    Tigon2View *view = opaque;
    uint32_t number = offset / 4;

    return !((view->card->ops.exact[number / 64] >> (number % 64)) & 1) &&
           !icount_enabled();
}

static const MemoryRegionOps registers_ops = {
    .read = registers_read,
    .write = registers_write,
    .unlocked = registers_unlocked,
    .endianness = DEVICE_BIG_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 4 },
    .impl = { .min_access_size = 1, .max_access_size = 4 },
};

/* Where nothing answers -------------------------------------------------- */

/* A debugger looks where firmware does not; that is nobody's mistake. */
static bool is_debugger(void)
{
    return !current_cpu;
}

static uint64_t nothing_read(void *opaque, hwaddr address, unsigned size)
{
    Tigon2View *view = opaque;
    Tigon2Card *card = view->card;

    if (!is_debugger()) {
        card->ops.undefined(card->model, view->index, address, size, false, 0);
    }
    return 0;
}

static void nothing_write(void *opaque, hwaddr address, uint64_t value,
                          unsigned size)
{
    Tigon2View *view = opaque;
    Tigon2Card *card = view->card;

    if (!is_debugger()) {
        card->ops.undefined(card->model, view->index, address, size, true,
                            value);
    }
}

static const MemoryRegionOps nothing_ops = {
    .read = nothing_read,
    .write = nothing_write,
    .endianness = DEVICE_BIG_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 4 },
    .impl = { .min_access_size = 1, .max_access_size = 4 },
};

/* Assembly --------------------------------------------------------------- */

/*
 * The wrapped region is as long as SRAM's range and the spill window
 * together, so that either is one alias into it whatever the offset.
 */
void tigon2_memory_init(Tigon2Card *card)
{
    uint32_t bytes = card->geometry.sram_bytes;
    uint64_t length = TIGON2_SRAM_END + TIGON2_SRAM_END;
    Object *owner = OBJECT(card);

    memory_region_init_ram(&card->sram, owner, "tigon2.sram", bytes,
                           &error_fatal);
    card->sram_data = memory_region_get_ram_ptr(&card->sram);
    /* For the model and for the monitor. */
    memory_region_add_subregion(get_system_memory(), 0, &card->sram);

    memory_region_init(&card->wrapped, owner, "tigon2.wrapped", length);
    for (uint64_t at = 0; at < length; at += bytes) {
        MemoryRegion *copy = g_new0(MemoryRegion, 1);

        memory_region_init_alias(copy, owner, "tigon2.sram-copy[*]",
                                 &card->sram, 0, bytes);
        memory_region_add_subregion(&card->wrapped, at, copy);
    }
}

void tigon2_view_init(Tigon2Card *card, uint32_t index)
{
    Tigon2View *view = &card->view[index];
    Object *owner = OBJECT(card);
    char letter = 'a' + index;
    g_autofree char *root = g_strdup_printf("tigon2.cpu-%c", letter);
    g_autofree char *scratch = g_strdup_printf("tigon2.scratch-%c", letter);

    view->card = card;
    view->index = index;

    memory_region_init(&view->root, owner, root, 4 * GiB);
    memory_region_init_io(&view->nothing, owner, &nothing_ops, view,
                          "tigon2.nothing", 4 * GiB);
    memory_region_add_subregion_overlap(&view->root, 0, &view->nothing, -1);

    memory_region_init_alias(&view->sram, owner, "tigon2.sram-view",
                             &card->wrapped, 0, TIGON2_SRAM_END);
    memory_region_add_subregion(&view->root, 0, &view->sram);
    memory_region_init_alias(&view->spill, owner, "tigon2.spill",
                             &card->wrapped, 0, TIGON2_SPILL_BYTES);
    memory_region_add_subregion(&view->root, TIGON2_SPILL_BASE, &view->spill);

    memory_region_init_ram(&view->scratch, owner, scratch,
                           card->geometry.scratch_bytes[index], &error_fatal);
    memory_region_add_subregion(&view->root, TIGON2_SCRATCH_BASE,
                                &view->scratch);
    memory_region_init_io(&view->registers, owner, &registers_ops, view,
                          "tigon2.registers", TIGON2_REGISTERS_BYTES);
    /* Both CPUs are in there at the same time. */
    view->registers.disable_reentrancy_guard = true;
    memory_region_add_subregion(&view->root, TIGON2_REGISTERS_BASE,
                                &view->registers);
}

/* An exact access ends its translation block, so this acts at once. */
void tigon2_memory_spill(Tigon2View *view, uint32_t offset)
{
    memory_region_set_alias_offset(&view->spill,
                                   offset % view->card->geometry.sram_bytes);
}
