"""System call numbers on the two architectures that the filter knows."""

from __future__ import annotations

from dataclasses import dataclass

NEWEST_KNOWN = 462
"""The last number (``mseal``) whose call was reviewed; newer ones are answered with ENOSYS."""

_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # name: (x86-64, aarch64)
    "_sysctl": (156, None),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "cachestat": (451, 451),
    "chmod": (90, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, None),
    "delete_module": (176, 106),
    "fadvise64": (221, 223),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "madvise": (28, 233),
    "mbind": (237, 235),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mincore": (27, 232),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "preadv2": (327, 286),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
}

_ARGUMENT_CHECKED = frozenset(
    {
        *("chmod", "clone", "clone3", "creat", "fadvise64", "fchmod", "fchmodat", "fchmodat2", "ioctl"),
        *(
            "madvise",
            "mbind",
            "mincore",
            "mknod",
            "mknodat",
            "open",
            "openat",
            "openat2",
            "prctl",
            "preadv2",
            "sched_setaffinity",
        ),
        *("socket", "socketpair"),
    }
)

DENIED = tuple(sorted(set(_NUMBERS) - _ARGUMENT_CHECKED))
"""Calls that are refused whatever their arguments."""

MODE_CREATING: dict[str, tuple[int, int | None]] = {
    "chmod": (1, None),
    "creat": (1, None),
    "fchmod": (1, None),
    "fchmodat": (2, None),
    "fchmodat2": (2, None),
    "open": (2, 1),
    "openat": (3, 2),
}
"""Calls that set a file mode: index of the mode, and of the flags that decide whether it counts."""


@dataclass(frozen=True)
class Architecture:
    """One column of the table.

    Attributes:
        machine: Name as ``uname -m`` prints it.
        audit: The ``AUDIT_ARCH_…`` constant that the kernel reports to filters.
        column: Column of the table above.
    """

    machine: str
    audit: int
    column: int

    def number(self, name: str) -> int | None:
        """Return the number of a call, None if this architecture does not have it."""
        return _NUMBERS[name][self.column]

    def require(self, name: str) -> int:
        """Return the number of a call that every architecture has.

        Raises:
            LookupError: This one does not.
        """
        number = self.number(name)
        if number is None:
            raise LookupError(f"{self.machine} has no {name}")
        return number


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", 0xC000003E, 0),
    "aarch64": Architecture("aarch64", 0xC00000B7, 1),
}
