//! `memcpy` and its family, which the compiler calls.
//!
//! Those of `compiler_builtins` use unaligned loads (`lwl`, `lwr`), which the chip is not known to
//! have (hardware reference, section 3.1). These copy words when both sides are aligned and bytes
//! otherwise; the packet path uses none of them. They are written in assembly because a compiler
//! recognises such loops and replaces them by calls to themselves.

core::arch::global_asm!(
    r#"
    .section .text.memory_functions, "ax", @progbits
    .set push
    .set noreorder
    .set noat

    # void *memcpy(void *to, const void *from, size_t bytes)
    .globl memcpy
    .type memcpy, @function
memcpy:
    or    $2, $4, $5
    andi  $2, $2, 3
    bne   $2, $0, 2f
    or    $3, $4, $0
1:  sltiu $2, $6, 4
    bne   $2, $0, 2f
    nop
    lw    $7, 0($5)
    addiu $5, $5, 4
    addiu $6, $6, -4
    sw    $7, 0($3)
    b     1b
    addiu $3, $3, 4
2:  beq   $6, $0, 3f
    nop
    lbu   $7, 0($5)
    addiu $5, $5, 1
    addiu $6, $6, -1
    sb    $7, 0($3)
    b     2b
    addiu $3, $3, 1
3:  jr    $31
    or    $2, $4, $0
    .size memcpy, . - memcpy

    # void *memmove(void *to, const void *from, size_t bytes)
    .globl memmove
    .type memmove, @function
memmove:
    sltu  $2, $5, $4
    beq   $2, $0, memcpy
    nop
    addu  $3, $4, $6
    addu  $5, $5, $6
1:  beq   $6, $0, 2f
    addiu $5, $5, -1
    lbu   $7, 0($5)
    addiu $3, $3, -1
    addiu $6, $6, -1
    b     1b
    sb    $7, 0($3)
2:  jr    $31
    or    $2, $4, $0
    .size memmove, . - memmove

    # void *memset(void *to, int byte, size_t bytes)
    .globl memset
    .type memset, @function
memset:
    andi  $5, $5, 0xff
    sll   $2, $5, 8
    or    $5, $5, $2
    sll   $2, $5, 16
    or    $5, $5, $2
    andi  $2, $4, 3
    bne   $2, $0, 2f
    or    $3, $4, $0
1:  sltiu $2, $6, 4
    bne   $2, $0, 2f
    nop
    addiu $6, $6, -4
    sw    $5, 0($3)
    b     1b
    addiu $3, $3, 4
2:  beq   $6, $0, 3f
    nop
    addiu $6, $6, -1
    sb    $5, 0($3)
    b     2b
    addiu $3, $3, 1
3:  jr    $31
    or    $2, $4, $0
    .size memset, . - memset

    # int memcmp(const void *a, const void *b, size_t bytes); also bcmp
    .globl memcmp
    .globl bcmp
    .type memcmp, @function
    .type bcmp, @function
memcmp:
bcmp:
1:  beq   $6, $0, 2f
    nop
    lbu   $3, 0($4)
    lbu   $7, 0($5)
    addiu $4, $4, 1
    addiu $5, $5, 1
    beq   $3, $7, 1b
    addiu $6, $6, -1
    jr    $31
    subu  $2, $3, $7
2:  jr    $31
    or    $2, $0, $0
    .size memcmp, . - memcmp
    .size bcmp, . - bcmp

    .set pop
"#
);
