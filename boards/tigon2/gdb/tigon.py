"""Commands for the Tigon II in gdb: tigon regs, events, rings, trace, words, bd, dma, until, same.

Names, addresses and bits come from tigon.json, which `cargo xtask gdb` writes beside
the session from the crates `tigon2-chip` and `host-interface`; its path is in the
convenience variable $tigon_facts. Nothing here writes to the card.
"""

import fnmatch
import json
import re
import struct

import gdb


def facts():
    """What is known of the chip; read once, when the first command asks."""
    if facts.known is None:
        path = gdb.convenience_variable("tigon_facts")
        if path is None:
            raise gdb.GdbError("$tigon_facts is not set: start gdb by cargo xtask gdb")
        with open(path.string(), encoding="utf-8") as file:
            facts.known = json.load(file)
    return facts.known


facts.known = None


def words(address, count):
    """Big-endian words of the selected CPU's memory."""
    try:
        memory = gdb.selected_inferior().read_memory(address, 4 * count)
    except gdb.MemoryError as error:
        raise gdb.GdbError(f"no memory at 0x{address:x}: {error}") from error
    return struct.unpack(f">{count}I", bytes(memory))


def word(address):
    return words(address, 1)[0]


def register(name):
    known = {entry["name"]: entry["offset"] for entry in facts()["registers"]}
    return word(facts()["registers_base"] + known[name])


def named(table, name):
    return next(entry for entry in facts()[table] if entry["name"] == name)


def names_of(bits, table):
    """The names of the bits that are set; a bit without a name shows as its number."""
    known = {entry["bit"]: entry["name"] for entry in facts()[table]}
    found = [bit for bit in range(31, -1, -1) if bits >> bit & 1]
    return " ".join(known.get(bit, f"bit{bit}") for bit in found) or "none"


def flags_of(value, table):
    found = [entry["name"] for entry in facts()[table] if value & entry["mask"]]
    return " ".join(found) or "none"


def let_through(thread):
    """A CPU's mask of its events: in its own scratch pad, if the firmware is ours."""
    try:
        place = gdb.execute("info address _core", to_string=True)
    except gdb.error:
        return 0xFFFFFFFF
    found = re.search("0x[0-9a-f]+", place)
    if not found:
        return 0xFFFFFFFF
    selected = gdb.selected_thread()
    for other in gdb.selected_inferior().threads():
        if other.num == thread:
            other.switch()
    try:
        return word(int(found.group(), 16))
    finally:
        selected.switch()


def an_address(arguments, usage):
    if not arguments:
        raise gdb.GdbError(usage)
    return int(gdb.parse_and_eval(arguments[0])) & 0xFFFFFFFF


def only(arguments, count, usage):
    if len(arguments) > count:
        raise gdb.GdbError(usage)


class Tigon(gdb.Command):
    """The card: tigon until, same, regs, events, rings, words, trace, bd, dma."""

    def __init__(self):
        super().__init__("tigon", gdb.COMMAND_DATA, prefix=True)


class Sub(gdb.Command):
    """A command behind `tigon`; arguments are shell words."""

    name = ""

    def __init__(self):
        super().__init__(f"tigon {self.name}", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        self.run(gdb.string_to_argv(argument))


class Regs(Sub):
    """tigon regs [NAME]: registers by name; * and ? stand for any letters.

    Example: tigon regs Dma*"""

    name = "regs"

    def run(self, arguments):
        only(arguments, 1, "usage: tigon regs [NAME]")
        pattern = (arguments[0] if arguments else "*").lower()
        found = [
            entry
            for entry in facts()["registers"]
            if fnmatch.fnmatchcase(entry["name"].lower(), pattern)
        ]
        if not found:
            raise gdb.GdbError(f"no register is called {arguments[0]}")
        for entry in found:
            value = word(facts()["registers_base"] + entry["offset"])
            access, name = entry["access"], entry["name"]
            print(f"0x{entry['offset']:03x} {access:<3} {name:<24} 0x{value:08x}")


class Events(Sub):
    """tigon events: what is pending for either CPU, the most urgent first."""

    name = "events"

    def run(self, arguments):
        only(arguments, 0, "usage: tigon events")
        for thread, cpu in enumerate("AB", 1):
            pending = register(f"Event{cpu}") & let_through(thread)
            mailboxes = register(f"MailboxEvent{cpu}")
            print(f"CPU {cpu}: 0x{pending:08x} {names_of(pending, 'events')}")
            print(f"  mailboxes 0x{mailboxes:08x} {names_of(mailboxes, 'mailboxes')}")


class Words(Sub):
    """tigon words [NAME]: the words that host and firmware share, by name.

    Example: tigon words *Ticks"""

    name = "words"

    def run(self, arguments):
        only(arguments, 1, "usage: tigon words [NAME]")
        pattern = (arguments[0] if arguments else "*").lower()
        found = [
            entry
            for entry in facts()["words"]
            if fnmatch.fnmatchcase(entry["name"].lower(), pattern)
        ]
        if not found:
            raise gdb.GdbError(f"no word is called {arguments[0]}")
        for entry in found:
            value = word(entry["address"])
            print(f"0x{entry['address']:03x} {entry['name']:<24} 0x{value:08x} {value}")


def queues():
    """The receive queues, as far as the firmware has any and they are open."""
    known = facts()["queues"]
    if word(named("words", "Magic")["address"]) != facts()["magic"]:
        return
    block = word(known["block"])
    count = word(block + known["open"]) if block else 0
    if not 0 < count <= known["most"]:
        return
    heads = [counter["name"] for counter in known["counters"]] + ["dropped"]
    heads = "".join(f"{head:>12}" for head in heads)
    print(f"{'receive queue':<16}{'buffers to':>10}{'taken to':>10}{heads}")
    for queue in range(count):
        buffers, rearm = (
            word(known["mailboxes"] + 8 * (word(block + known[first]) + queue))
            for first in ("buffer_mailbox", "rearm_mailbox")
        )
        counters = block + known["first"] + queue * known["bytes"]
        shown = [word(counters + counter["offset"]) for counter in known["counters"]]
        shown.append(sum(word(counters + offset) for offset in known["drops"]))
        shown = "".join(f"{count:>12}" for count in shown)
        polled = " stays polled" if rearm & known["stay_polled"] else ""
        taken = rearm & known["consumer"]
        print(f"{queue:<16}{buffers:>10}{taken:>10}{shown}{polled}")


class Rings(Sub):
    """tigon rings: producer, consumer and fill of every ring of chip and host, and queues."""

    name = "rings"

    def run(self, arguments):
        only(arguments, 0, "usage: tigon rings")
        print(f"{'ring':<16}{'producer':>10}{'consumer':>10}{'used':>6} of")
        for ring in facts()["chip_rings"]:
            flags = facts()["pointer_flags"]
            producer = register(ring["producer"]) & ~flags
            consumer = register(ring["consumer"]) & ~flags
            size, entry = ring["bytes"], ring["entry"]
            used = (producer - consumer) % size // entry
            print(
                f"{ring['name']:<16}{f'0x{producer:x}':>10}{f'0x{consumer:x}':>10}"
                f"{used:>6} {size // entry}"
            )
        for ring in facts()["host_rings"]:
            ends = [ring["producer"], ring["consumer"]]
            shown = ["-" if end is None else str(word(end)) for end in ends]
            print(f"{ring['name']:<16}{shown[0]:>10}{shown[1]:>10}")
        queues()


class Trace(Sub):
    """tigon trace [COUNT]: the newest entries of the firmware's trace ring."""

    name = "trace"

    def run(self, arguments):
        only(arguments, 1, "usage: tigon trace [COUNT]")
        count = int(gdb.parse_and_eval(arguments[0])) if arguments else 16
        start, length, pointer = (
            word(named("words", name)["address"])
            for name in ("TraceStart", "TraceLength", "TracePointer")
        )
        entry = facts()["trace_entry"]
        size = length // entry
        if size == 0 or not start <= pointer < start + length:
            print("there is no trace ring: the firmware has not made one")
            return
        at = (pointer - start) // entry
        for number in range(1, min(count, size) + 1):
            found = words(start + (at + number) % size * entry, entry // 4)
            label = struct.pack(">2I", *found[:2]).split(b"\0")[0].decode("ascii", "replace")
            if not label:
                break
            numbers = " ".join(f"0x{value:x}" for value in found[4:])
            print(f"{found[3]:>10} us {label:<8} {found[2]:>3} {numbers}")


class Bd(Sub):
    """tigon bd ADDRESS [send|receive]: a buffer descriptor; send unless it says else.

    Example: tigon bd 0x2000"""

    name = "bd"

    def run(self, arguments):
        usage = "usage: tigon bd ADDRESS [send|receive]"
        only(arguments, 2, usage)
        address = an_address(arguments, usage)
        kind = arguments[1] if len(arguments) > 1 else "send"
        if kind == "send":
            high, low, length_and_flags, vlan = words(address, 4)
            length, flags = length_and_flags >> 16, length_and_flags & 0xFFFF
            print(f"send BD at 0x{address:x}: host 0x{high << 32 | low:016x} length {length}")
            print(f"  flags 0x{flags:04x} {flags_of(flags, 'bd_flags')} vlan {vlan & 0xFFFF}")
        elif kind == "receive":
            bd = words(address, 8)
            flags, errors = bd[3] & 0xFFFF, bd[5] >> 16
            print(
                f"receive BD at 0x{address:x}: host 0x{bd[0] << 32 | bd[1]:016x} "
                f"length {bd[2] & 0xFFFF} index {bd[2] >> 16}"
            )
            print(f"  flags 0x{flags:04x} {flags_of(flags, 'bd_flags')} vlan {bd[5] & 0xFFFF}")
            print(
                f"  errors 0x{errors:04x} {flags_of(errors, 'bd_errors')} "
                f"ip 0x{bd[4] >> 16:04x} transport 0x{bd[4] & 0xFFFF:04x} opaque 0x{bd[7]:x}"
            )
        else:
            raise gdb.GdbError(usage)


class Dma(Sub):
    """tigon dma ADDRESS: a descriptor of a DMA channel."""

    name = "dma"

    def run(self, arguments):
        usage = "usage: tigon dma ADDRESS"
        only(arguments, 1, usage)
        address = an_address(arguments, usage)
        high, low, local, length, state, target = words(address, 6)
        print(
            f"DMA descriptor at 0x{address:x}: host 0x{high << 32 | low:016x} "
            f"NIC 0x{local:x} length {length & 0xFFFF}"
        )
        print(f"  state 0x{state:08x} sum to 0x{target:x}")


BUILD_ID_BYTES = 20
# What stands in front of a build id that the linker wrote: lengths, kind, owner.
NOTE = struct.pack(">3I", 4, BUILD_ID_BYTES, 3) + b"GNU\0"


def build_on_card():
    """The build id of the firmware on the card; None as long as it cannot be told."""
    if word(named("words", "Magic")["address"]) == facts()["magic"]:
        # It has started, and says so itself.
        block = word(named("words", "LogBlock")["address"])
        if block:
            ids = words(block + facts()["build_id"], BUILD_ID_BYTES // 4)
            return struct.pack(">5I", *ids).hex()
    try:
        # Where the ELF in gdb has it: the same place on the card, if both are alike.
        place = gdb.execute("info address _build_id_note", to_string=True)
        note = int(re.search("0x[0-9a-f]+", place).group(), 16)
        length = len(NOTE) + BUILD_ID_BYTES
        found = bytes(gdb.selected_inferior().read_memory(note, length))
    except (gdb.error, AttributeError):
        return None
    return found[len(NOTE) :].hex() if found.startswith(NOTE) else None


def build_of_elf():
    """The build id of gdb's ELF; None if it has none."""
    ids = [objfile.build_id for objfile in gdb.objfiles() if objfile.is_valid()]
    return ids[0] if ids else None


def is_same():
    """Whether the card has the code that gdb's ELF has; None if that cannot be told yet."""
    if not any(words(facts()["firmware_base"], 4)):
        return None
    of_elf, of_card = build_of_elf(), build_on_card()
    if of_elf and of_card and of_elf != of_card:
        return False
    # Of the same build, and nobody has changed it since.
    try:
        told = gdb.execute("compare-sections .text", to_string=True)
    except gdb.error:
        return None
    if "MIS-MATCHED" in told:
        return False
    return True if "matched" in told else None


def warn_of_another():
    if is_same() is not False:
        return
    of_elf, of_card = build_of_elf(), build_on_card()
    if of_elf and of_elf == of_card:
        raise gdb.GdbError(
            "the code on the card is not that of gdb's ELF: names and lines may be wrong.\n"
            f"Both are of build {of_elf}: one of them was changed since."
        )
    raise gdb.GdbError(
        "the ELF in gdb is not the firmware on the card: names and lines are another's.\n"
        f"It is of build {of_elf or 'unknown'}, the card runs build {of_card or 'unknown'}.\n"
        "Start gdb with the ELF that this firmware was made from, or give it by `file`."
    )


class Same(Sub):
    """tigon same: whether the firmware on the card is the one whose ELF gdb has."""

    name = "same"

    def run(self, arguments):
        only(arguments, 0, "usage: tigon same")
        warn_of_another()
        print("the card has the code of gdb's ELF" if is_same() else "there is no code to compare")


class Until(Sub):
    """tigon until PLACE: goes on to a place, once; stays if it is there already.

    Example: tigon until *0x4000"""

    name = "until"

    def run(self, arguments):
        if not arguments:
            raise gdb.GdbError("usage: tigon until PLACE")
        place = " ".join(arguments)
        # The driver may have started CPU A before gdb came: it stands at its first
        # instruction then, and a breakpoint there would not be hit.
        there = gdb.selected_frame().pc()
        if there == facts()["firmware_base"]:
            # All is loaded, and nothing has run: a place of another ELF may never be met.
            warn_of_another()
        if any(found.pc == there for found in gdb.decode_line(place)[1] or ()):
            gdb.execute("frame")
            return
        gdb.execute(f"tbreak {place}")
        gdb.execute("continue")
        warn_of_another()


# Expressions mean the same in assembler code as in a handler.
gdb.execute("set language rust")

Tigon()
for command in (Until, Same, Regs, Events, Words, Rings, Trace, Bd, Dma):
    command()
