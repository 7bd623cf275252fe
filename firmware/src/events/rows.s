# Assembler macros for the rows of the jump tables; what `events` makes of them is said there.
# They are a template of `global_asm!`: names in braces come from its operands.
#
# A row is the number of an event's bit and, from bit 8 on, its CPU (0: A, 1: B). A table is
# that of CPU A (`of_a`), of CPU B (`of_b`), or of both sides on one CPU. `previous` is the bit
# of the row before.

# A handler of the image.
        .macro dispatch_row cpu, row, target
        .set mine, of_a
        .if \row >> 8
        .set mine, of_b
        .endif
        .if (\row & 255) <= previous
        .set mine, 0
        .endif
        .if mine
        dispatch_between \cpu, (\row & 255)
        .set both, 0
        .if of_a + of_b == 2
        .if (\row & 255) == {timer_bit}
        .set both, 1
        .endif
        .endif
        .if both
        j dispatch_timers
        move $5, $21
        .else
        j \target
        .if \row >> 8
        move $4, $21
        .else
        move $4, $20
        .endif
        .endif
        .set previous, \row & 255
        .endif
        .endm

# A handler that comes later, if `between` is its bit: then `filled` says that there is an entry.
        .macro dispatch_later cpu, row, target
        .set mine, of_a
        .if \row >> 8
        .set mine, of_b
        .endif
        .if mine
        .if (\row & 255) == between
        j \target
        .if \row >> 8
        move $4, $21
        .else
        move $4, $20
        .endif
        .set filled, 1
        .endif
        .endif
        .endm
