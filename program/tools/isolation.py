"""What isolation this machine gives, found out by trying.

The ladder: ``full`` (bubblewrap with every layer), ``reduced`` (bubblewrap, with a layer missing), ``off`` (nothing
runs), and ``unsafe`` where nothing is to be had and the user says to run programs all the same.
"""

from __future__ import annotations

import functools
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from coda.program.tools import cgroups, root
from coda.program.tools.template import START_SECONDS, NotStarted, Template
from coda.program.types import Isolation

BUBBLEWRAP = "bwrap"
CONTAINER = "run CODA in a Linux container, see docs/sandbox.md"


@dataclass(frozen=True)
class Feature:
    """One layer of the isolation.

    Attributes:
        name: What it is called.
        works: Whether it does, here.
        protects: What it is for.
        remedy: How to get it, where it is missing.
    """

    name: str
    works: bool
    protects: str
    remedy: str = ""


@dataclass(frozen=True)
class Ground:
    """What programs are run on.

    Attributes:
        level: The rung of the ladder.
        why: One sentence: what is missing and how to get it.
        features: The layers, outermost first.
        bwrap: Path of bubblewrap, where it can be used.
        nested: Whether each program gets namespaces of its own from a warm template.
        filtered: Whether there is a system-call filter.
        delegation: The control group whose limits may be set, where there is one.
    """

    level: Isolation
    why: str
    features: tuple[Feature, ...] = ()
    bwrap: str | None = None
    nested: bool = False
    filtered: bool = False
    delegation: Path | None = None


@functools.cache
def survey() -> Ground:
    """Try every layer; the result is kept for the process."""
    if sys.platform != "linux":
        return _off(
            f"model-written programs are confined with Linux namespaces, which {sys.platform} lacks: {CONTAINER}."
        )
    bwrap = shutil.which(BUBBLEWRAP)
    if bwrap is None:
        return _off("bubblewrap is not installed: install the package `bubblewrap` (apt, dnf, pacman or apk).")
    try:
        nested = _abilities(bwrap, nested=True)
    except NotStarted:
        try:
            nested = {"namespaces": False} | _abilities(bwrap, nested=False)
        except NotStarted as error:
            return _off(_explained(error.complaint), bwrap)
    delegation = cgroups.delegation()
    features = _features(namespaces=nested["namespaces"], filtered=nested["filter"], grouped=delegation.usable)
    missing = [feature for feature in features if not feature.works]
    why = " ".join(f"No {feature.name}: {feature.remedy}." for feature in missing) or "Every layer is in place."
    return Ground(
        level="reduced" if missing else "full",
        why=why,
        features=features,
        bwrap=bwrap,
        nested=nested["namespaces"],
        filtered=nested["filter"],
        delegation=delegation.path if delegation.usable else None,
    )


def without_isolation() -> Ground:
    """The ground for a user who runs programs without a sandbox where none can be had."""
    return Ground("unsafe", "Programs run without a sandbox, as the user asked: they can do all that the user can.")


def _abilities(bwrap: str, *, nested: bool) -> dict[str, bool]:
    template = Template(bwrap, root.minimal(), nested=nested)
    try:
        template.control.settimeout(START_SECONDS)
        return template.greeting(template.control.recv(4096))
    except OSError as error:
        raise NotStarted(str(error)) from error
    finally:
        template.close()


def _off(why: str, bwrap: str | None = None) -> Ground:
    bubblewrap = Feature("bubblewrap", bwrap is not None, "the program that builds the sandbox", why)
    return Ground("off", why[:1].upper() + why[1:], (bubblewrap,))


def _explained(complaint: str) -> str:
    """What to do about bubblewrap's complaint."""
    if any(word in complaint for word in ("namespace", "Permission denied", "not permitted", "uid map")):
        return (
            f"bubblewrap cannot make namespaces here ({complaint}): allow unprivileged user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, or in a "
            "container --security-opt seccomp=unconfined), see docs/sandbox.md."
        )
    return f"bubblewrap does not work here: {complaint}"


def _features(*, namespaces: bool, filtered: bool, grouped: bool) -> tuple[Feature, ...]:
    return (
        Feature("bubblewrap", True, "own namespaces, a minimal read-only file system, no network, no capabilities"),
        Feature(
            "nested namespaces",
            namespaces,
            "a warm interpreter, and yet each program apart from every other",
            "the kernel or a security module forbids namespaces inside bubblewrap, so each program starts cold",
        ),
        Feature(
            "system-call filter",
            filtered,
            "keeps programs from rarely used and often attacked parts of the kernel",
            "it exists for x86-64 and 64-bit ARM kernels with seccomp",
        ),
        Feature(
            "control groups",
            grouped,
            "limits of memory and processes for a program as a whole",
            "memory is limited for each process and watched for all together; run under "
            "`systemd-run --user --scope -p Delegate=yes` for limits by the kernel",
        ),
    )
