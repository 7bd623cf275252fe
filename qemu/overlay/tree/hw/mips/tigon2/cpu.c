/*
 * CPU of the Alteon Tigon II
 *
 * A MIPS II integer core without interrupts, exception vectors, address
 * translation or coprocessors.  It runs, or it is halted; what another MIPS
 * would take as an exception halts it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "internal.h"
#include "accel/tcg/cpu-ops.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"
#include "hw/core/sysemu-cpu-ops.h"
#include "tigon2-cpu.h"

static const struct mips_def_t tigon2_cpu_def = {
    .name = "tigon2",
    .CP0_Config0 = MMU_TYPE_NONE << CP0C0_MT,
    .CCRes = 2,
    .SEGBITS = 32,
    .PABITS = 32,
    .insn_flags = CPU_MIPS2 | INSN_TIGON2,
    .mmu_type = MMU_TYPE_NONE,
};

static TCGCPUOps tigon2_tcg_ops;
static SysemuCPUOps tigon2_sysemu_ops;

/* Start, halt ------------------------------------------------------------ */

static void set_runs(Tigon2CPU *cpu, bool runs)
{
    qatomic_set(&cpu->runs, runs);
    CPU(cpu)->halted = !runs;
}

static void do_start(CPUState *cs, run_on_cpu_data data)
{
    CPUMIPSState *env = cpu_env(cs);

    /*
     * The pipeline is empty: no branch waits for its delay slot.  Unless the
     * CPU goes on where it was halted: that may be between the two.
     */
    if (env->active_tc.PC != data.target_ptr) {
        env->hflags &= ~MIPS_HFLAG_BMASK;
        env->active_tc.PC = data.target_ptr;
    }
    cs->exception_index = EXCP_NONE;
    set_runs(TIGON2_CPU(cs), true);
}

static void do_halt(CPUState *cs, run_on_cpu_data data)
{
    set_runs(TIGON2_CPU(cs), false);
}

static void do_nothing(CPUState *cs, run_on_cpu_data data)
{
}

void tigon2_cpu_start(Tigon2CPU *cpu, uint32_t pc)
{
    async_run_on_cpu(CPU(cpu), do_start, RUN_ON_CPU_TARGET_PTR(pc));
}

void tigon2_cpu_halt(Tigon2CPU *cpu)
{
    async_run_on_cpu(CPU(cpu), do_halt, RUN_ON_CPU_NULL);
}

void tigon2_cpu_settle(Tigon2CPU *cpu)
{
    run_on_cpu(CPU(cpu), do_nothing, RUN_ON_CPU_NULL);
}

/* Hooks of the CPU class ------------------------------------------------- */

static bool tigon2_has_work(CPUState *cs)
{
    return qatomic_read(&TIGON2_CPU(cs)->runs);
}

/* Every virtual address is its physical address. */
static bool tigon2_tlb_fill(CPUState *cs, vaddr address, int size,
                            MMUAccessType access_type, int mmu_idx,
                            bool probe, uintptr_t retaddr)
{
    vaddr page = address & TARGET_PAGE_MASK;

    if (access_type == MMU_INST_FETCH &&
        address >= TIGON2_CPU(cs)->fetch_end) {
        if (probe) {
            return false;
        }
        cpu_env(cs)->CP0_BadVAddr = address;
        cs->exception_index = EXCP_IBE;
        cpu_loop_exit_restore(cs, retaddr);
    }
    tlb_set_page(cs, page, page, PAGE_READ | PAGE_WRITE | PAGE_EXEC, mmu_idx,
                 TARGET_PAGE_SIZE);
    return true;
}

static hwaddr tigon2_get_phys_page_debug(CPUState *cs, vaddr address)
{
    /* A debugger may send addresses sign-extended. */
    return (uint32_t)address & TARGET_PAGE_MASK;
}

static void tigon2_do_interrupt(CPUState *cs)
{
    Tigon2CPU *cpu = TIGON2_CPU(cs);
    CPUMIPSState *env = cpu_env(cs);
    int exception = cs->exception_index;

    cs->exception_index = EXCP_NONE;
    set_runs(cpu, false);
    cpu_exit(cs);
    if (cpu->fault) {
        cpu->fault(cpu, exception, env->active_tc.PC, env->CP0_BadVAddr);
    }
}

static void tigon2_cpu_class_init(ObjectClass *oc, void *data)
{
    CPUClass *cc = CPU_CLASS(oc);

    MIPS_CPU_CLASS(oc)->cpu_def = &tigon2_cpu_def;

    tigon2_tcg_ops = *cc->tcg_ops;
    tigon2_tcg_ops.tlb_fill = tigon2_tlb_fill;
    tigon2_tcg_ops.do_interrupt = tigon2_do_interrupt;
    tigon2_tcg_ops.cpu_exec_halt = tigon2_has_work;
    cc->tcg_ops = &tigon2_tcg_ops;

    tigon2_sysemu_ops = *cc->sysemu_ops;
    tigon2_sysemu_ops.has_work = tigon2_has_work;
    tigon2_sysemu_ops.get_phys_page_debug = tigon2_get_phys_page_debug;
    cc->sysemu_ops = &tigon2_sysemu_ops;
}

static const TypeInfo tigon2_cpu_types[] = {
    {
        .name = TYPE_TIGON2_CPU,
        .parent = TYPE_MIPS_CPU,
        .instance_size = sizeof(Tigon2CPU),
        .class_init = tigon2_cpu_class_init,
    },
};

DEFINE_TYPES(tigon2_cpu_types)
