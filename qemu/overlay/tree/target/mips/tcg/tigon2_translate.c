/*
 * Translation of the instructions of the Alteon Tigon II's CPUs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "translate.h"
#include "hw/mips/tigon2/tigon2-cpu.h"

/* Made by decodetree from tigon2.decode. */
#include "decode-tigon2.c.inc"

/* Notes an operand of PRI: it tells which events firmware waits for. */
static void note_operand(int number, TCGv operand)
{
    tcg_gen_st_tl(operand, tcg_env,
                  offsetof(Tigon2CPU, encoded[0]) + 4 * number -
                  offsetof(ArchCPU, env));
}

/*
 * PRI rd, rs, rt: priority encode.  One more than the number of the most
 * significant bit that is set in both operands, 0 if there is none.
 */
static bool trans_PRI(DisasContext *ctx, arg_PRI *a)
{
    TCGv both = tcg_temp_new();
    TCGv mask = tcg_temp_new();

    gen_load_gpr(both, a->rs);
    gen_load_gpr(mask, a->rt);
    note_operand(0, both);
    note_operand(1, mask);
    tcg_gen_and_tl(both, both, mask);
    tcg_gen_clzi_tl(both, both, 32);
    tcg_gen_subfi_tl(both, 32, both);
    gen_store_gpr(both, a->rd);
    return true;
}

/*
 * JOFF rs, rt: jump to rs + 8 * rt after one delay slot.  The operands are
 * read before the slot is executed.
 */
static bool trans_JOFF(DisasContext *ctx, arg_JOFF *a)
{
    TCGv offset;

    if (ctx->hflags & MIPS_HFLAG_BMASK) {
        /* A jump in a delay slot is undefined. */
        generate_exception_end(ctx, EXCP_RI);
        return true;
    }

    offset = tcg_temp_new();
    gen_load_gpr(btarget, a->rs);
    gen_load_gpr(offset, a->rt);
    tcg_gen_shli_tl(offset, offset, 3);
    tcg_gen_add_tl(btarget, btarget, offset);
    ctx->hflags |= MIPS_HFLAG_BR | MIPS_HFLAG_BDS32;
    return true;
}

static bool trans_RESERVED(DisasContext *ctx, arg_RESERVED *a)
{
    generate_exception_end(ctx, EXCP_RI);
    return true;
}

static bool trans_BLANK(DisasContext *ctx, arg_BLANK *a)
{
    if (!a->field) {
        /* The standard instruction. */
        return false;
    }
    generate_exception_end(ctx, EXCP_RI);
    return true;
}
