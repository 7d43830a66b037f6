"""Reaching a network, or a process by a socket."""

from __future__ import annotations

from tests.sandbox.attacks.attack import Attack


def _attack(name: str, code: str, *, root: bool = False) -> Attack:
    return Attack("network", name, code, root=root)


ATTACKS = (
    _attack("connect by TCP", "won = socket.create_connection(('127.0.0.1', F['tcp']), 2)"),
    _attack(
        "connect by TCP over IPv6",
        """
won = socket.create_connection(('::1', F['tcp6']), 2)
""",
    ),
    _attack(
        "send by UDP",
        """
won = socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', F['tcp']))
""",
    ),
    _attack(
        "listen to the world",
        """
s = socket.socket()
s.bind(('0.0.0.0', 0))
s.listen()
won = s.getsockname()[1]
""",
    ),
    _attack(
        "connect without a library",
        """
port = F['tcp'].to_bytes(2, 'big')
address = (2).to_bytes(2, sys.byteorder) + port + bytes([127, 0, 0, 1]) + bytes(8)
won = checked(libc.connect(checked(libc.socket(2, 1, 0)), address, 16)) == 0
""",
    ),
    _attack(
        "connect to a socket by its path",
        """
s = socket.socket(socket.AF_UNIX)
s.settimeout(2)
s.connect(F['socket'])
won = True
""",
    ),
    _attack(
        "connect to an abstract socket",
        """
s = socket.socket(socket.AF_UNIX)
s.settimeout(2)
s.connect('\\0' + F['abstract'])
won = True
""",
    ),
    _attack(
        "send a datagram to a socket by its path",
        """
won = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', F['datagrams'])
""",
    ),
    _attack(
        "send through a pair of sockets to another address",
        """
won = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', F['datagrams'])
""",
    ),
    _attack(
        "be handed a file over a socket",
        """
s = socket.socket(socket.AF_UNIX)
s.settimeout(2)
s.connect(F['giver'])
won = os.read(socket.recv_fds(s, 1, 1)[1][0], 10)
""",
    ),
    _attack(
        "take packets off the wire",
        """
won = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
""",
        root=True,
    ),
    _attack(
        "send raw packets",
        """
won = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
""",
        root=True,
    ),
    _attack(
        "ask the kernel about routes",
        """
won = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
""",
    ),
    _attack(
        "hear of devices",
        """
s = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 15)
s.bind((0, 1))
won = True
""",
    ),
    _attack(
        "talk to the hypervisor",
        """
won = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
""",
    ),
    _attack(
        "let the kernel encrypt",
        """
won = socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
""",
    ),
    _attack(
        "queue requests past the filter",
        """
won = call('io_uring_setup', 4, ctypes.create_string_buffer(120))
""",
    ),
)
