"""A cluster over TLS: certificates from the command, and nobody without them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cluster.conftest import PLAN, STORE, sets_of
from measure.worlds import World
from support.cluster import Cluster, cluster, fixture_sets
from support.killing import wait_for
from support.synthetic import reachable_folder

from roundkit.core.errors import Refused
from roundkit.measure.cluster.certificates import make_certificates
from roundkit.measure.cluster.pool import DaskPool


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Cluster]:
    with reachable_folder() as folder:
        subprocess.run(
            [sys.executable, "-m", "roundkit", "cluster", "cert", str(folder / "certs")],
            check=True,
            timeout=60,
        )
        with cluster(folder / "cluster", tls=folder / "certs") as made:
            made.start_worker("w", fixture_sets(["a"]))
            yield made


def test_certificates_are_private_and_made_once(encrypted: Cluster) -> None:
    assert encrypted.tls is not None
    modes = {path.name: path.stat().st_mode & 0o777 for path in encrypted.tls.iterdir()}
    assert modes == dict.fromkeys(("authority.pem", "cluster.pem", "cluster.key"), 0o600)
    with pytest.raises(Refused, match="certificates-exist"):
        make_certificates(encrypted.tls, days=1)


def test_an_experiment_over_tls_and_none_with_other_certificates(
    encrypted: Cluster, world: World, tmp_path: Path
) -> None:
    make_certificates(tmp_path / "others", days=1)

    def pool_with(tls: Path | None) -> DaskPool:
        return DaskPool(
            sets_of("a"),
            plan_digest=PLAN,
            store_sha256=STORE,
            scheduler=encrypted.address,
            scratch=tmp_path,
            tls=tls,
        )

    request = world.request(world.candidate({}), sets_of("a"), pairs=2, name="tls.1")
    with closing(pool_with(encrypted.tls)) as pool:
        wait_for(pool.free_sets, "a free device set")
        record = pool.submit(request).result(timeout=60)
        assert (record.outcome, record.reason, record.detail) == ("complete", None, None)
    with closing(pool_with(tmp_path / "others")) as stranger:
        wait_for(lambda: "does not answer" in (stranger.trouble() or ""), "the refusal")
        assert stranger.free_sets() == ()
