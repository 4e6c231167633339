#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hostile client of the rendezvous (train/launch): whatever strangers do, a start is not delayed, nobody joins
without the token, memory stays bounded, and two jobs on one port do not mix.

    strangers.py PROGRAM        launch_calls of the build
"""

import hashlib
import hmac
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = sys.argv[1]
TOKEN = "the token of these tests"
VERSION, HELLO, ANSWER, NEWS, ENTRY = 2, 80, 80, 12, 18
DIR = tempfile.mkdtemp()
DELAY = 1.0  # most seconds that strangers may cost: one that was waited for would cost 5 (train/launch/links.h)
TRIES = 5    # how often a start is compared with one without strangers right before it: a busy machine costs some, too
MEMORY = 32 << 20
FILES = 300  # most open files of a rank that meets: 256 strangers and its own

number, failed = 0, 0


def case(name, wrong):
    """One line of TAP; `wrong`: what is, or nothing."""
    global number, failed
    number += 1
    failed += bool(wrong)
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
    if wrong:
        print("# " + "\n# ".join(str(wrong).splitlines()[:40]))
    sys.stdout.flush()


# ---- the greeting, once more ---------------------------------------------------------------------


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def job_of(token):
    return mac(token.encode(), b"weft job")[:16]


def key_of(token):
    return mac(token.encode(), b"weft key")


def hello(token=TOKEN, world=2, rank=1, to=0, port=9, version=VERSION):
    return b"weftmeet" + struct.pack("<6I", version, world, rank, to, port, 0) + job_of(token) + os.urandom(32)


def proof(key, first, answer):
    return mac(key, b"weft connects\0\0\0", first, answer)


def dial(port, host="127.0.0.1"):
    s = socket.create_connection((host, port), timeout=60)
    s.settimeout(60)
    return s


def read_all(s, most=1 << 20):
    got = b""
    try:
        while len(got) < most:
            piece = s.recv(most - len(got))
            if not piece:
                break
            got += piece
    except OSError:
        pass
    return got


def join(port, token=TOKEN, world=2, rank=1, key=None):
    """Greets as a rank would; returns everything that came back."""
    s = dial(port)
    first = hello(token, world, rank)
    s.sendall(first)
    answer = read_all(s, ANSWER)
    if len(answer) < ANSWER or answer[12:16] != bytes(4):
        return answer
    s.sendall(proof(key or key_of(token), first, answer))
    return answer + read_all(s, NEWS + world * ENTRY)


# ---- jobs ----------------------------------------------------------------------------------------


def free_port():
    """Below those that the system gives to outgoing connections."""
    while True:
        with socket.socket() as s:
            try:
                s.bind(("", random.randint(20000, 32000)))
                return s.getsockname()[1]
            except OSError:
                pass


def environment(**more):
    e = {k: v for k, v in os.environ.items() if not re.match("(SLURM|OMPI|PMIX|WEFT|TORCH)|RANK$|WORLD_SIZE$", k)}
    e.update({k: str(v) for k, v in more.items()})
    return e


class Rank:
    def __init__(self, rank, world, port, token=TOKEN, host="127.0.0.1", what="meet", **more):
        self.log = os.path.join(DIR, f"{port}.{rank}.{time.monotonic()}")
        self.process = subprocess.Popen(
            [PROGRAM, what], stdin=subprocess.DEVNULL, stderr=open(self.log, "w"),
            env=environment(RANK=rank, WORLD_SIZE=world, MASTER_ADDR=host, MASTER_PORT=port, WEFT_JOB_TOKEN=token, **more))

    def wait(self):
        try:
            return self.process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def said(self):
        return open(self.log, "rb").read()

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def peak(self):
        """Bytes of memory that it had at most."""
        return int(re.search(r"VmHWM:\s*(\d+) kB", open(f"/proc/{self.process.pid}/status").read())[1]) << 10


def sockets_listening(port):
    """Their addresses, as /proc writes them."""
    found = []
    for name in ("tcp", "tcp6"):
        for line in open(f"/proc/net/{name}").read().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.split(":")[1], 16) == port:
                found.append(local.split(":")[0])
    return found


def until_listening(port):
    for _ in range(6000):
        if sockets_listening(port):
            return
        time.sleep(0.05)
    raise SystemExit(f"nobody listens at port {port}")


def start(world, hostile):
    """A job whose rank 0 has met strangers before the others come: what is wrong with it, its seconds, its ranks."""
    port = free_port()
    ranks = [Rank(0, world, port)]
    until_listening(port)
    stop = threading.Event()
    keep = hostile(port, stop)
    begin = time.monotonic()
    ranks += [Rank(k, world, port) for k in range(1, world - 1)]
    peak, files = (ranks[0].peak(), ranks[0].files()) if world > 2 and ranks[0].process.poll() is None else (0, 0)
    ranks.append(Rank(world - 1, world, port))
    codes = [r.wait() for r in ranks]
    seconds = time.monotonic() - begin
    stop.set()
    wrong = f"exit codes {codes}: {[r.said() for r in ranks]}" if any(codes) else ""
    for got in keep or []:
        if isinstance(got, threading.Thread):
            got.join()
        elif isinstance(got, socket.socket):
            got.close()
        elif len(got) > ANSWER:
            wrong += f"a stranger was told {got!r}\n"
    if peak > MEMORY:
        wrong += f"rank 0 had {peak} bytes\n"
    if files > FILES:
        wrong += f"rank 0 had {files} open files\n"
    if any(b < 32 and b != 10 for r in ranks for b in r.said()):
        wrong += f"control characters: {[r.said() for r in ranks]}\n"
    return wrong, seconds, ranks


def nobody(_port, _stop):
    return []


def check(name, hostile, world=3, warning=None):
    for _ in range(TRIES):
        usual = start(world, nobody)[1]
        wrong, seconds, ranks = start(world, hostile)
        said = ranks[0].said().decode()
        if warning and not re.search(warning, said):
            wrong += f"no warning {warning!r} in {said!r}\n"
        late = seconds > usual + DELAY
        if wrong or not late:
            break
    case(name, wrong or (late and f"{seconds:.2f} s instead of {usual:.2f}"))
    return ranks


# ---- what strangers do ---------------------------------------------------------------------------


def silent(port, _stop):
    return [dial(port) for _ in range(8)]


def halting(port, _stop):
    """Each stops somewhere in the greeting."""
    kept = []
    for n in (1, 8, 12, 31, 48, 79):
        kept.append(dial(port))
        kept[-1].sendall(hello()[:n])
    kept.append(dial(port))
    kept[-1].sendall(hello())  # and no proof
    kept.append(dial(port))
    kept[-1].sendall(hello() + bytes(31))
    return kept


def garbage(port, _stop):
    texts = [b"GET / HTTP/1.1\r\n\r\n", b"\x1b[31m\x1b]0;owned\x07" * 20, os.urandom(4096), b"\0" * 4096, b"weftmeex" * 9]
    kept = []
    for text in texts:
        s = dial(port)
        s.sendall(text)
        kept.append(read_all(s))
    return kept


def earlier_version(port, _stop):
    s = dial(port)
    s.sendall(b"weftmeet" + struct.pack("<IiiI", 1, 2, 1, 4))
    return [read_all(s)]


def without_token(port, _stop):
    stolen = key_of("some other token")
    kept = [join(port, token="some other token"), join(port, key=stolen), join(port, world=9, key=stolen),
            join(port, rank=2, key=bytes(32))]
    s = dial(port)  # rank 0's own proof as ours
    s.sendall(hello())
    answer = read_all(s, ANSWER)
    s.sendall(answer[48:])
    kept.append(read_all(s))
    return kept


def huge(port, _stop):
    kept = []
    for world, rank, at in ((2**31 - 1, 2**31 - 1, 2**32 - 1), (2**32 - 1, 2**32 - 1, 0), (0, 0, 70000), (2, 2**31, 1)):
        s = dial(port)
        s.sendall(hello(world=world, rank=rank, port=at) + bytes(32))
        kept.append(read_all(s))
    return kept


def flood(port, stop):
    def run():
        kept = []
        while not stop.is_set():
            try:
                s = socket.socket()
                s.setblocking(False)
                s.connect_ex(("127.0.0.1", port))
                kept.append(s)
            except OSError:
                pass
            if len(kept) > 400:
                kept.pop(0).close()
        for s in kept:
            s.close()
    threads = [threading.Thread(target=run) for _ in range(2)]
    for t in threads:
        t.start()
    time.sleep(0.5)
    return threads


def recorded():
    """What a rank of this token sends to join, of a job that has been; by a proxy between it and rank 0."""
    port, front = free_port(), socket.create_server(("127.0.0.1", 0))
    ranks = [Rank(0, 2, port)]
    until_listening(port)
    ranks.append(Rank(1, 2, front.getsockname()[1]))
    ours, _ = front.accept()
    theirs = dial(port)
    said = ours.recv(HELLO, socket.MSG_WAITALL)
    theirs.sendall(said)
    ours.sendall(theirs.recv(ANSWER, socket.MSG_WAITALL))
    last = ours.recv(32, socket.MSG_WAITALL)
    theirs.sendall(last)
    ours.sendall(theirs.recv(NEWS + 2 * ENTRY, socket.MSG_WAITALL))
    codes = [r.wait() for r in ranks]
    for s in (ours, theirs, front):
        s.close()
    case("a recorded start is one", len(said + last) != HELLO + 32 or any(codes) and codes)
    return said, last


def replayed(said, last):
    def hostile(port, _stop):
        s = dial(port)
        s.sendall(said)
        answer = read_all(s, ANSWER)
        s.sendall(last)
        both = answer + read_all(s)
        s = dial(port)
        s.sendall(said + last)
        return [both, read_all(s)]
    return hostile


# ---- the cases -----------------------------------------------------------------------------------

first = start(3, nobody)
case("a start without strangers", first[0])

port = free_port()
zero = Rank(0, 2, port)
until_listening(port)
got = join(port)
case("who has the token joins: these strangers speak the protocol",
     (zero.wait() or len(got) != ANSWER + NEWS + 2 * ENTRY or got[ANSWER:ANSWER + 4] != bytes(4)) and (got, zero.said()))

check("eight silent connections before the job", silent)
check("connections that stop in the middle of the greeting", halting)
check("garbage, with escapes", garbage, warning=r'does not speak the protocol of a job: "GET / HTTP/1.1\\x0d\\x0a"')
check("an earlier version", earlier_version, warning="its protocol is 1, expected 2")
check("the greeting without the token, or with a proof of nothing", without_token, warning="it is of another job")
check("sizes that nobody has", huge)
check("a replayed greeting", replayed(*recorded()), warning="it does not have the job token")
check("a flood of connections", flood)

port = free_port()
zero = Rank(0, 2, port)
until_listening(port)
other = Rank(1, 2, port, token="the token of another job")
code = other.wait()
case("a rank of another job on the same port ends with a sentence, alone",
     (code != 2 or b"it is of another job" not in other.said() or zero.process.poll() is not None) and (code, other.said()))
case("and the job goes on", (Rank(1, 2, port).wait() or zero.wait()) and zero.said())

for rank in (1, 2):
    port = free_port()
    zero = Rank(0, 2, port)
    until_listening(port)
    other = Rank(rank, 3, port)
    codes = other.wait(), zero.wait()
    sentence = b"a process of a job of 3 ranks came to one of 2 ranks"
    case(f"of one's own job, another world is a mistake that both sides name: rank {rank}",
         (codes != (2, 2) or sentence not in zero.said() or sentence not in other.said()) and
         (codes, zero.said(), other.said()))

port = free_port()
zero = Rank(0, 2, port)
until_listening(port)
begin, s = time.monotonic(), dial(port)
s.settimeout(120)
got, seconds = read_all(s), time.monotonic() - begin
case("a silent connection is dropped after some seconds", (got or seconds > 100 or b"it said nothing" not in zero.said()) and
     (got, seconds, zero.said()))
case("and the job still starts", (Rank(1, 2, port).wait() or zero.wait()) and zero.said())

port = free_port()
ranks = [Rank(0, 3, port)]
until_listening(port)
ranks += [Rank(1, 3, port), Rank(1, 3, port)]
codes = [r.wait() for r in ranks]
case("a rank that comes twice, too",
     (codes != [2, 2, 2] or any(b"two processes say that they are rank 1 of 3" not in r.said() for r in ranks)) and
     (codes, [r.said() for r in ranks]))

# a token that the launcher has made: nobody can know it
go = os.path.join(DIR, "go")
launcher = subprocess.Popen([PROGRAM, "slow", "2"], stdin=subprocess.DEVNULL, stderr=open(os.path.join(DIR, "made"), "w"),
                            env=environment(WEFT_TEST_GO=go))
port, wrong = 0, "no rank 0 was found"
for _ in range(6000):
    try:
        children = open(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read().split()
        port = int(re.search(rb"\0MASTER_PORT=(\d+)\0", b"\0" + open(f"/proc/{children[0]}/environ", "rb").read())[1])
        break
    except (OSError, IndexError, TypeError):
        time.sleep(0.01)
if port:
    until_listening(port)
    told = [join(port, token="guess" * 4), join(port, token="")]
    wrong = [t for t in told if len(t) > ANSWER] or sockets_listening(port) != ["0100007F"] and sockets_listening(port)
open(go, "w").close()
case("a token that was made keeps strangers out, at 127.0.0.1 alone", wrong or launcher.wait() and open(os.path.join(DIR, "made")).read())

# on several machines rank 0 listens at the address that they know, and at no other
own = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
own = [a for a in own if re.fullmatch(r"[0-9.]+", a)]
if own:
    port = free_port()
    ranks = [Rank(0, 2, port, host=own[0])]
    until_listening(port)
    where = sockets_listening(port)
    ranks.append(Rank(1, 2, port, host=own[0]))
    codes = [r.wait() for r in ranks]
    want = [socket.inet_aton(own[0])[::-1].hex().upper()]
    port = free_port()
    one = {"LOCAL_WORLD_SIZE": 2, "host": own[0]}
    ranks = [Rank(0, 2, port, LOCAL_RANK=0, **one)]
    until_listening(port)
    case("ranks of one machine meet at 127.0.0.1, whatever its name",
         sockets_listening(port) != ["0100007F"] and sockets_listening(port))
    codes += [Rank(1, 2, port, LOCAL_RANK=1, **one).wait(), ranks[0].wait()]
    case("several machines meet at the address that is named", (where != want or any(codes)) and (where, want, codes))
else:
    case("several machines meet at the address that is named # SKIP no address but 127.0.0.1", "")

print(f"1..{number}")
print(f"# {number - failed} passed, {failed} failed; a start takes {first[1]:.2f} s")
sys.exit(failed > 0)
