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

/*
 *            start                    park
 *   HALTED ---------> RUNNING ----------------> PARKED
 *      ^                 |  ^                      |
 *      |   halt, fault   |  |        unpark        |
 *      +-----------------+  +----------------------+
 *      +-------------------------------------------+  halt
 */
typedef enum Tigon2RunState {
    TIGON2_HALTED,
    TIGON2_RUNNING,
    TIGON2_PARKED,      /* asleep, which software cannot notice */
} Tigon2RunState;

typedef void Tigon2FaultHandler(Tigon2CPU *cpu, int exception, uint32_t pc,
                                uint32_t address);

struct Tigon2CPU {
    MIPSCPU parent_obj;

    /*
     * Written by the CPU's own thread, or while that is stopped; except that
     * any thread may make RUNNING of PARKED.
     */
    int run_state;
    /* Instructions are fetched below this address only. */
    uint32_t fetch_end;
    Tigon2FaultHandler *fault;
    void *opaque;
    uint32_t index;
};

/* Without any lock. */
void tigon2_cpu_park(Tigon2CPU *cpu);
bool tigon2_cpu_unpark(Tigon2CPU *cpu);
/*
 * All under the big lock, without which a CPU that is just falling asleep would
 * miss its wake-up.
 */
void tigon2_cpu_kick(Tigon2CPU *cpu);
void tigon2_cpu_start(Tigon2CPU *cpu, uint32_t pc);
void tigon2_cpu_halt(Tigon2CPU *cpu);
void tigon2_cpu_settle(Tigon2CPU *cpu);
/* Instead of unpark and kick while the whole machine is stopped. */
void tigon2_cpu_wake_stopped(Tigon2CPU *cpu);

#endif
