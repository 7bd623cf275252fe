/*
 * The Tigon II card: memory, CPUs, wire and the hardware model behind them
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_MIPS_TIGON2_CARD_H
#define HW_MIPS_TIGON2_CARD_H

#include "exec/memory.h"
#include "hw/clock.h"
#include "hw/sysbus.h"
#include "net/net.h"
#include "qemu/notify.h"
#include "qemu/timer.h"
#include "ffi.h"
#include "tigon2-cpu.h"

#define TYPE_TIGON2_CARD "tigon2-card"
OBJECT_DECLARE_SIMPLE_TYPE(Tigon2Card, TIGON2_CARD)

/* Longest line of text from the model. */
#define TIGON2_TEXT             1024

/* Memory map of a CPU. */
#define TIGON2_SRAM_END         0x00800000u
#define TIGON2_SPILL_BASE       0x00800000u
#define TIGON2_SPILL_BYTES      0x00400000u
#define TIGON2_SCRATCH_BASE     0x00c00000u
#define TIGON2_REGISTERS_BASE   0xc0000000u
#define TIGON2_REGISTERS_BYTES  0x400u

/* What one CPU sees. */
typedef struct Tigon2View {
    Tigon2Card *card;
    uint32_t index;
    Tigon2CPU *cpu;
    MemoryRegion root;
    MemoryRegion nothing;       /* behind all else */
    MemoryRegion sram;
    MemoryRegion spill;
    MemoryRegion scratch;
    MemoryRegion registers;
} Tigon2View;

struct Tigon2Card {
    SysBusDevice parent_obj;

    /* Properties. */
    NICConf conf;
    char *model_path;
    char *socket_path;
    char *board_path;
    char *eeprom_path;

    NICState *nic;
    uint32_t waiting;           /* frames that the wire was too full for */
    QEMUTimer *timer;
    QEMUBH *errands;
    QEMUBH *offer;              /* frames that the card had refused */
    Clock *clock;
    Notifier exit;

    Tigon2Geometry geometry;
    MemoryRegion sram;
    MemoryRegion wrapped;       /* copies of sram, one after another */
    void *sram_data;
    Tigon2View view[TIGON2_CPUS];

    void *model;
    Tigon2ModelOps ops;
    Tigon2HostOps host;
};

/* memory.c; the geometry is known. */
void tigon2_memory_init(Tigon2Card *card);
void tigon2_view_init(Tigon2Card *card, uint32_t index);
void tigon2_memory_spill(Tigon2View *view, uint32_t offset);

/* engine.c */
bool tigon2_engine_load(Tigon2Card *card, Error **errp);
void tigon2_engine_begin(Tigon2Card *card);
void tigon2_engine_fault(Tigon2CPU *cpu, int exception, uint32_t pc,
                         uint32_t address);

#endif
