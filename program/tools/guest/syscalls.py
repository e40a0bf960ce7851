"""The system-call filter: a BPF program built here, for x86-64 and 64-bit ARM.

Everything is allowed that ordinary programs need; what only administers a machine, looks into other processes, opens
a new world (namespaces, mounts), or allocates kernel memory that no limit covers fails with ``EPERM``. Calls newer
than the list, the 32-bit and the x32 interfaces do not exist (``ENOSYS``, or the process is killed).
"""

from __future__ import annotations

import ctypes
import errno
import functools
import platform
import struct

# Numbers: x86-64, arm64 (``None``: the call does not exist there). A test compares them with the kernel's headers.
FORBIDDEN: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # large and often attacked parts of the kernel
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "seccomp": (317, 277),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "lookup_dcookie": (212, 18),
    # memory that no limit of a process covers
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # the machine
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
}

_CLONE, _CLONE3, _SOCKET, _IOCTL = (56, 220), 435, (41, 198), (16, 29)
_NEWEST = 462
_NEW_NAMESPACE = 0x7E020000
_FAMILIES = (1, 2, 10)  # unix, IPv4, IPv6; all of them in a network namespace that is empty
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they type into a terminal

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data (little endian: low words)

_PR_SET_SECCOMP, _FILTER_MODE = 22, 2

_libc = ctypes.CDLL(None, use_errno=True)


def supported(machine: str | None = None) -> bool:
    """Whether there is a filter for this processor."""
    return (machine or platform.machine()) in _ARCHITECTURES


@functools.cache
def build(machine: str | None = None) -> bytes:
    """The filter's BPF program, eight bytes an instruction."""
    column, audit = _ARCHITECTURES[machine or platform.machine()]

    def op(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("<HBBI", code, yes, no, k)

    def fail(number: int) -> bytes:
        return op(_RETURN, _FAIL | number)

    allow = op(_RETURN, _ALLOW)
    program = [op(_LOAD, _ARCHITECTURE), op(_EQUAL, audit, 1, 0), op(_RETURN, _KILL), op(_LOAD, _NUMBER)]
    program += [op(_GREATER, _NEWEST, 0, 1), fail(errno.ENOSYS)]
    program += [op(_EQUAL, _CLONE3, 0, 1), fail(errno.ENOSYS)]  # its flags cannot be inspected; C libraries use clone
    for numbers in FORBIDDEN.values():
        if (number := numbers[column]) is not None:
            program += [op(_EQUAL, number, 0, 1), fail(errno.EPERM)]
    program += [op(_EQUAL, _CLONE[column], 0, 4), op(_LOAD, _FIRST), op(_ANY_BIT, _NEW_NAMESPACE, 0, 1)]
    program += [fail(errno.EPERM), allow]
    families = [op(_EQUAL, family, len(_FAMILIES) - i, 0) for i, family in enumerate(_FAMILIES)]
    program += [op(_EQUAL, _SOCKET[column], 0, len(families) + 3), op(_LOAD, _FIRST), *families]
    program += [fail(errno.EAFNOSUPPORT), allow]
    program += [op(_EQUAL, _IOCTL[column], 0, len(_TERMINAL_INPUT) + 3), op(_LOAD, _SECOND)]
    program += [op(_EQUAL, request, len(_TERMINAL_INPUT) - i, 0) for i, request in enumerate(_TERMINAL_INPUT)]
    program += [allow, fail(errno.EPERM), allow]
    return b"".join(program)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(program: bytes) -> bool:
    """Put the calling process and all that it will start under the filter, for good."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    return bool(_libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(header), 0, 0) == 0)
