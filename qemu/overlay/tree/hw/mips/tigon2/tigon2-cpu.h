/*
 * CPU of the Alteon Tigon II
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_MIPS_TIGON2_CPU_H
#define HW_MIPS_TIGON2_CPU_H

#include "cpu.h"

#define TYPE_TIGON2_CPU MIPS_CPU_TYPE_NAME("tigon2")
OBJECT_DECLARE_SIMPLE_TYPE(Tigon2CPU, TIGON2_CPU)

typedef void Tigon2FaultHandler(Tigon2CPU *cpu, int exception, uint32_t pc,
                                uint32_t address);

struct Tigon2CPU {
    MIPSCPU parent_obj;

    /*
     * It has been started, and not halted since.  Written by the CPU's own
     * thread, or while that is stopped.
     */
    bool runs;
    /*
     * Operands of the last PRI.  Written by translated code, at each PRI, and
     * read by the CPU's own thread.
     */
    uint32_t encoded[2];
    /* Instructions are fetched below this address only. */
    uint32_t fetch_end;
    Tigon2FaultHandler *fault;
    void *opaque;
    uint32_t index;
};

/* All under the big lock. */
void tigon2_cpu_start(Tigon2CPU *cpu, uint32_t pc);
void tigon2_cpu_halt(Tigon2CPU *cpu);
void tigon2_cpu_settle(Tigon2CPU *cpu);

#endif
