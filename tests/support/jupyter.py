"""A real JupyterLab server with one notebook folder, and what tests do in its page."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.browser import Page
from support.killing import wait_for

_APP = "window.jupyterapp"
_PANEL = f"{_APP}.shell.currentWidget"
_KERNEL = f"{_PANEL}.context.sessionContext.session?.kernel"


@contextmanager
def jupyter_lab(folder: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Serve a folder with JupyterLab, everything of its own kept beside; return the address.

    Args:
        folder: Holds the notebooks.
        env: Environment of the server and its kernels.
    """
    own = folder.parent / "jupyter"
    token, port = secrets.token_hex(16), _free_port()
    places = {f"JUPYTER_{name}_DIR": str(own / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    argv = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
        f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}", "--ServerApp.port_retries=0",
        "--LabApp.expose_app_in_browser=True", f"--LabApp.user_settings_dir={own / 'settings'}",
    ]  # fmt: skip
    quiet = own / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    with (own / "server.log").open("wb") as log:
        server = subprocess.Popen(
            argv, env={**os.environ, **env, **places}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    address = f"http://localhost:{port}"
    try:
        wait_for(lambda: _answers(f"{address}/api/status?token={token}", server), "JupyterLab")
        yield f"{address}/lab/workspaces/{secrets.token_hex(4)}?reset&token={token}"
    finally:
        server.terminate()
        server.wait(timeout=60)


def open_notebook(page: Page, address: str, name: str) -> None:
    """Open a notebook in a fresh workspace and wait until its kernel is idle."""
    page.open(address)
    page.wait_for(f"{_APP}?.restored.then(() => true)", "JupyterLab's page")
    page.evaluate(
        f"{_APP}.commands.execute('docmanager:open', {{path: {json.dumps(name)}, factory: 'Notebook'}})"
        ".then(() => true)"
    )
    page.wait_for(f"{_PANEL}?.context?.isReady", "the notebook")
    wait_for_kernel(page)


def wait_for_kernel(page: Page) -> None:
    """Wait until the kernel is there and has nothing to do."""
    page.wait_for(
        f"{_KERNEL}?.status === 'idle' && {_KERNEL}.connectionStatus === 'connected'", "an idle kernel"
    )


def run_all(page: Page) -> None:
    """Run every cell and wait for the end."""
    command(page, "notebook:run-all-cells")
    wait_for_kernel(page)


def restart_kernel(page: Page) -> None:
    """Restart the kernel, as the menu does after its question."""
    page.evaluate(f"{_PANEL}.context.sessionContext.restartKernel().then(() => true)")
    wait_for_kernel(page)


def theme(page: Page, name: str) -> None:
    """Choose ``JupyterLab Light`` or ``JupyterLab Dark`` and wait until it is there."""
    page.evaluate(
        f"{_APP}.commands.execute('apputils:change-theme', {{theme: {json.dumps(name)}}}).then(() => 1)"
    )
    light = "true" if name.endswith("Light") else "false"
    there = (
        f"document.body.dataset.jpThemeLight === '{light}' && !document.getElementById('jupyterlab-splash')"
    )
    page.wait_for(there, name)


def command(page: Page, name: str, **arguments: Any) -> None:
    """Run one of JupyterLab's commands to its end."""
    page.evaluate(f"{_APP}.commands.execute({json.dumps(name)}, {json.dumps(arguments)}).then(() => true)")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str, server: subprocess.Popen[bytes]) -> bool:
    assert server.poll() is None, "JupyterLab ended before it answered"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
