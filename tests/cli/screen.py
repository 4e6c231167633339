# SPDX-License-Identifier: Apache-2.0
"""What a command shows on a terminal of so many columns.

    screen.py COLUMNS AT SEND COMMAND...

runs COMMAND on a pseudo-terminal; once the text AT stands on the screen (empty: never), SEND is done: ^C types Ctrl-C,
TERM sends that signal. Printed are the lines that were overwritten in place ("meter: "), in order, then the rows of the
screen as they stand at the end, wrapped as the terminal wraps them, and the exit status. Numbers that depend on the
time are masked. With SEND the lines that were overwritten are left out and each other line is shown once.
"""
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios


class Screen:
    """Rows without an end; knows CR, LF, and the wrap that waits for the next character."""

    def __init__(self, columns):
        self.columns, self.rows, self.x, self.meters = columns, [""], 0, []

    def put(self, text):
        for i, c in enumerate(text):
            if c == "\r":
                following = text[i + 1:i + 2]
                if following != "\n" and self.rows[-1].strip():
                    self.meters.append(self.rows[-1].rstrip())
                self.x = 0
            elif c == "\n":
                self.rows.append("")
                self.x = 0
            else:
                assert c >= " ", f"a control character: {c!r}"
                if self.x == self.columns:
                    self.rows.append("")
                    self.x = 0
                row = self.rows[-1].ljust(self.x)
                self.rows[-1] = row[:self.x] + c + row[self.x + 1:]
                self.x += 1


MASKS = [(r"\d+(:\d\d)+ left", "T left"), (r"[\d,.]+ tokens/s", "N tokens/s"), (r"\b\d+ ms", "N ms"),
         (r"(loss|grad norm|perplexity) [\d.]+", r"\1 N"), (r"in [\d.]+ s\b", "in N s")]
# Where a signal strikes depends on the time: which step, and how many before it.
LOOSE = [(r"\d+ (of \d+ steps) \(\d+ %\)", r"N \1"), (r"(step |iter_)\d+", r"\1N"), (r"lr [\d.]+", "lr N")]


def masked(line, loose):
    for pattern, mask in MASKS + (LOOSE if loose else []):
        line = re.sub(pattern, mask, line)
    return line


def shown(lines, loose):
    out = []
    for line in lines:
        line = masked(line.rstrip(), loose)
        if line not in out if loose else out[-1:] != [line]:
            out.append(line)
    return out


def main():
    columns, at, send, command = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3], sys.argv[4:]
    pid, fd = pty.fork()
    if pid == 0:
        sys.stdin.readline()  # until the terminal has its size
        os.execv(command[0], command)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    settings = termios.tcgetattr(fd)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, settings)
    os.write(fd, b"\n")
    seen = b""
    while True:
        try:
            got = os.read(fd, 4096)
        except OSError:
            break
        if not got:
            break
        seen += got
        if at and at in seen:
            at = b""
            if send == "^C":
                os.write(fd, b"\x03")
            else:
                os.kill(pid, getattr(signal, "SIG" + send))
    status = os.waitpid(pid, 0)[1]
    screen = Screen(columns)
    screen.put(seen.decode())
    loose = bool(send)
    for line in [] if loose else shown(screen.meters, loose):
        print("meter:", line)
    print("\n".join(shown(screen.rows, loose)))
    print("exit:", os.waitstatus_to_exitcode(status))


main()
