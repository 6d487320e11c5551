"""gdb support for programs that use vgasnet; docs/how-to/debugging.md describes how to load and use it.

A load or store of a page not mapped in the segment raises SIGSEGV or SIGBUS. The library handles it, so gdb is set to pass it
on. gdb itself cannot read unmapped pages, or finds zeros. The commands here read them in the pool, or have the library fetch them.
"""

import struct

import gdb

VERSION = 2
FIELDS = (
    "version rank segment segment_bytes page_bytes entries entry_bytes entry_count key frames readable scratch scratch_bytes"
    " code"
).split()
ERR_NOT_READY = 10004
UNANSWERED = 1 << 63
MASK = (1 << 64) - 1
# Limit on stops of other threads during one call.
STOPS_MAX = 100
# No signal, SIGINT, SIGTRAP, SIGSTOP: the signals with which gdb itself stops a program.
PLAIN_SIGNALS = (0, 2, 5, 19)
WORD_BYTES = 8


def evaluate(expression):
    """The value of an expression in C, independent of the frame's language: the library is in Rust."""
    language = gdb.parameter("language")
    gdb.execute("set language c", to_string=True)
    try:
        return gdb.parse_and_eval(expression)
    finally:
        gdb.execute("set language %s" % language, to_string=True)


class Segment:
    """The rank's segment, as vgasnet_debug_layout describes it."""

    # The frames of the segment's pages, for the program and segment in the key. Empty if the program has run since.
    index = {}

    def __init__(self):
        try:
            place = int(evaluate("(unsigned long) &vgasnet_debug_layout"))
        except gdb.error:
            raise gdb.GdbError("vgasnet: this program has not loaded vgasnet")
        self.place = place
        raw = bytes(gdb.selected_inferior().read_memory(place, WORD_BYTES * len(FIELDS)))
        for name, value in zip(FIELDS, struct.unpack("=%dQ" % len(FIELDS), raw)):
            setattr(self, name, value)
        if self.version == 0:
            raise gdb.GdbError("vgasnet: the rank has not attached its segment yet, or has no memory here")
        if self.version != VERSION:
            raise gdb.GdbError("vgasnet: this script is of another version than the library")
        if self.segment_bytes == 0:
            raise gdb.GdbError("vgasnet: rank %d attached no segment" % self.rank)

    def covers(self, address):
        return self.segment <= address < self.segment + self.segment_bytes

    def check(self, address, count):
        if count < 0 or not self.covers(address) or address + count > self.segment + self.segment_bytes:
            raise gdb.GdbError(
                "vgasnet: %d bytes at %#x are not in the segment of rank %d, %#x to %#x"
                % (count, address, self.rank, self.segment, self.segment + self.segment_bytes)
            )

    def frame_of(self, page):
        """The frame of a page readable here, or None. The index is from the first lookup since the program last ran.
        Library calls may have moved pages since, so the entry is checked again."""
        if Segment.index.get("place") != (gdb.selected_inferior().num, self.place, self.key):
            Segment.index = {"place": (gdb.selected_inferior().num, self.place, self.key), "frames": self.pages_here()}
        frame = Segment.index["frames"].get(page)
        if frame is not None:
            entry = gdb.selected_inferior().read_memory(self.entries + frame * self.entry_bytes, 2 * WORD_BYTES)
            word, key = struct.unpack("=QQ", bytes(entry))
            if not word & self.readable or key - self.key != page:
                return None
        return frame

    def pages_here(self):
        """The frames of the segment's pages readable here, by page."""
        raw = bytes(gdb.selected_inferior().read_memory(self.entries, self.entry_bytes * self.entry_count))
        found = {}
        for frame in range(self.entry_count):
            word, key = struct.unpack_from("=QQ", raw, frame * self.entry_bytes)
            if word & self.readable and 0 <= key - self.key < self.segment_bytes // self.page_bytes:
                found[key - self.key] = frame
        return found

    def read(self, address, count):
        """The bytes, page by page."""
        self.check(address, count)
        parts = []
        while count > 0:
            page, offset = divmod(address - self.segment, self.page_bytes)
            length = min(count, self.page_bytes - offset)
            frame = self.frame_of(page)
            if frame is not None:
                place = self.frames + frame * self.page_bytes + offset
                parts.append(bytes(gdb.selected_inferior().read_memory(place, length)))
            else:
                parts.append(self.fetch(page, address, length))
            address, count = address + length, count - length
        return b"".join(parts)

    def fetch(self, page, address, count):
        """The bytes of a page not in this pool, by a call of the library."""
        if not is_live():
            raise gdb.GdbError(
                "vgasnet: page %d (at %#x) was not in the memory of rank %d, so it is not in the core file; "
                "its bytes are lost with the job" % (page, self.segment + page * self.page_bytes, self.rank)
            )
        parts = []
        while count > 0:
            length = min(count, self.scratch_bytes)
            code = self.call((self.scratch, address, length))
            if code == ERR_NOT_READY:
                raise gdb.GdbError(
                    "vgasnet: page %d has not come: this thread, or another rank, is stopped in the library's work; "
                    "let it go on for a moment" % page
                )
            if code != 0:
                raise gdb.GdbError("vgasnet: vgasnet_debug_read failed with code %d" % code)
            parts.append(bytes(gdb.selected_inferior().read_memory(self.scratch, length)))
            address, count = address + length, count - length
        return b"".join(parts)

    def call(self, arguments):
        """The answer of vgasnet_debug_read, passed in memory."""
        place = self.place + WORD_BYTES * FIELDS.index("code")
        gdb.selected_inferior().write_memory(place, struct.pack("=Q", UNANSWERED))
        if (gdb.selected_thread().name or "").startswith("vgasnet-"):
            raise gdb.GdbError("vgasnet: this thread is one of the library; select a thread of the program first")
        name = gdb.selected_frame().architecture().name()
        with Undisturbed():
            if name == "i386:x86-64":
                call_with_general_registers(arguments)
            else:
                evaluate("((int (*)(long, long, long)) vgasnet_debug_read)(%d, %d, %d)" % arguments)
        code = struct.unpack("=Q", bytes(gdb.selected_inferior().read_memory(place, WORD_BYTES)))[0]
        if code == UNANSWERED:
            raise gdb.GdbError("vgasnet: gdb could not call vgasnet_debug_read in this thread; select another one")
        return code


GENERAL = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags orig_rax".split()


def call_with_general_registers(arguments):
    """Calls vgasnet_debug_read. It preserves all other registers: gdb 13 cannot restore them on processors with AMX."""
    frame, thread = gdb.selected_frame(), gdb.selected_thread()
    gdb.newest_frame().select()
    values = {name: int(evaluate("$" + name)) & MASK for name in GENERAL}
    signal = stop_signal()
    end = int(evaluate("(unsigned long) &vgasnet_debug_stop"))
    start = int(evaluate("(unsigned long) &vgasnet_debug_read"))
    # Below the red zone of a leaf function.
    stack = ((values["rsp"] - 256) & ~63) - WORD_BYTES
    gdb.selected_inferior().write_memory(stack, struct.pack("=Q", end))
    point = gdb.Breakpoint("*%#x" % end, internal=True)
    point.silent, point.thread = True, thread.global_num
    try:
        changed = dict(zip(("rdi", "rsi", "rdx"), arguments), rsp=stack, rip=start, orig_rax=MASK)
        set_registers(changed)
        for _ in range(STOPS_MAX):
            # Another thread may stop first.
            gdb.execute("signal 0", to_string=True)
            thread.switch()
            if gdb.newest_frame().pc() == end:
                break
    finally:
        point.delete()
        thread.switch()
        set_registers(values)
    if signal not in PLAIN_SIGNALS:
        gdb.execute("queue-signal %d" % signal, to_string=True)
    if frame.is_valid():
        frame.select()


def set_registers(values):
    for name, value in values.items():
        gdb.execute("set var $%s = %d" % (name, value if value < 1 << 63 else value - (1 << 64)))


def stop_signal():
    try:
        return int(evaluate("$_siginfo.si_signo"))
    except gdb.error:
        return 0


class Undisturbed:
    """Context of a function call by gdb: the library's threads run too, and breakpoints are off."""

    depth = 0

    def __enter__(self):
        Undisturbed.depth += 1
        self.locking = gdb.parameter("scheduler-locking")
        gdb.execute("set scheduler-locking off", to_string=True)
        self.points = [point for point in list(gdb.breakpoints()) + WildAccess.all if point.is_valid() and point.enabled]
        for point in self.points:
            point.enabled = False

    def __exit__(self, *_):
        Undisturbed.depth -= 1
        for point in self.points:
            point.enabled = True
        gdb.execute("set scheduler-locking %s" % self.locking, to_string=True)


def is_live():
    """Whether the inferior is a process and not a core file."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if connection is not None:
        return connection.type != "core"
    return "core file" not in gdb.execute("info target", to_string=True)


class Vgasnet(gdb.Command):
    """Commands for programs that use vgasnet."""

    def __init__(self):
        super().__init__("vgasnet", gdb.COMMAND_DATA, prefix=True)


class Read(gdb.Command):
    """Bytes of the segment, pages not in memory included: vgasnet read ADDRESS COUNT."""

    def __init__(self):
        super().__init__("vgasnet read", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        arguments = gdb.string_to_argv(argument)
        if len(arguments) != 2:
            raise gdb.GdbError("usage: vgasnet read ADDRESS COUNT")
        address, count = (int(gdb.parse_and_eval(text)) for text in arguments)
        data = Segment().read(address, count)
        for at in range(0, count, 16):
            line = data[at : at + 16]
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
            print("%#x: %-47s %s" % (address + at, " ".join("%02x" % byte for byte in line), text))


class Print(gdb.Command):
    """The value of an expression in the segment, pages not in memory included: vgasnet print EXPRESSION.
    gdb itself reads everything the expression depends on, so follow pointers in the segment one by one."""

    def __init__(self):
        super().__init__("vgasnet print", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        value = gdb.parse_and_eval(argument)
        segment = Segment()
        if value.address is not None and segment.covers(int(value.address)):
            value = gdb.Value(segment.read(int(value.address), value.type.sizeof), value.type)
        print(value.format_string())


class Pages(gdb.Command):
    """The pages of the segment in this rank's memory: vgasnet pages [ADDRESS COUNT]."""

    def __init__(self):
        super().__init__("vgasnet pages", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        segment = Segment()
        arguments = gdb.string_to_argv(argument)
        if len(arguments) not in (0, 2):
            raise gdb.GdbError("usage: vgasnet pages [ADDRESS COUNT]")
        first, behind = 0, segment.segment_bytes // segment.page_bytes
        if arguments:
            address, count = (int(gdb.parse_and_eval(text)) for text in arguments)
            segment.check(address, count)
            first = (address - segment.segment) // segment.page_bytes
            behind = (address + max(count, 1) - 1 - segment.segment) // segment.page_bytes + 1
        here = sorted(page for page in segment.pages_here() if first <= page < behind)
        for begin, end in ranges(here):
            start, stop = (segment.segment + page * segment.page_bytes for page in (begin, end))
            print("%#x to %#x: pages %d to %d" % (start, stop, begin, end - 1))
        print("%d of %d pages of rank %d are in its memory" % (len(here), behind - first, segment.rank))


def ranges(numbers):
    """Ascending numbers as ranges: the first, and the one after the last."""
    found = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1][1] = number + 1
        else:
            found.append([number, number + 1])
    return found


class WildAccess(gdb.Breakpoint):
    """Stops at a faulting load or store not handled by the library: SIGSEGV and SIGBUS themselves do not stop."""

    all = []

    def __init__(self):
        super().__init__("vgasnet_debug_stop", internal=True)
        self.silent = True

    def stop(self):
        print("vgasnet: a signal ends the program; the frame before <signal handler called> in the backtrace has raised it")
        return True


def forget_index(_=None):
    """Drops the index when the program runs on: its pages move. Library calls for a page move only a small number."""
    if not Undisturbed.depth:
        Segment.index = {}


def stop_at_wild_accesses(_=None):
    """Sets the breakpoint as soon as the library is loaded."""
    try:
        evaluate("(unsigned long) &vgasnet_debug_stop")
    except gdb.error:
        return
    if not any(point.location == "vgasnet_debug_stop" for point in WildAccess.all):
        WildAccess.all.append(WildAccess())


def set_up():
    gdb.execute("handle SIGSEGV SIGBUS nostop noprint pass", to_string=True)
    for command in (Vgasnet, Read, Print, Pages):
        command()
    stop_at_wild_accesses()
    gdb.events.new_objfile.connect(stop_at_wild_accesses)
    gdb.events.cont.connect(forget_index)
    gdb.events.exited.connect(forget_index)


set_up()
