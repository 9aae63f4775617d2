"""A decoder's step on a GPU, compiled with all sizes open: its plan is made for one new token, and serves any."""

import numpy as np
import onnxruntime
import pytest
from state_models import HEADS, SIZE, growing
from verify.builds import generated
from verify.here import in_this_process

from tests.emulator.kernels import emulator_cache, needs_compiler
from tilec.abi.manifest import read_manifest
from tilec.importer import import_model
from tilec.runtime import Session
from tilec.runtime.gpu.emulated import EmulatorDriver
from tilec.runtime.gpu.executor import GpuExecutor
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions, VerifyOptions
from tilec.spec.resolve import resolve_device
from tilec.verify.stage import verify

pytestmark = needs_compiler

ROOM, WIDTH = 80, SIZE * HEADS


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("growing")
    imported = import_model(growing(folder / "m.onnx"), state="in-place")
    if imported.owned_file:
        (folder / imported.owned_file).write_bytes(b"".join(imported.weights))
    plan = schedule(imported.graph, resolve_device("a100"), ScheduleOptions(effort="quick", variants=1))
    assert plan.scenarios["decode"].at[0]["new"] == 1
    return folder, plan, generated(plan, folder, "a100").body


def test_prompts_and_steps_behind_caches_on_the_device(decoder):
    folder, _, _ = decoder
    manifest, driver = read_manifest(folder), EmulatorDriver(emulator_cache())
    session = Session(manifest, folder, GpuExecutor(folder, manifest, driver), 1)
    peer, generator = onnxruntime.InferenceSession(folder / "m.onnx"), np.random.default_rng(0)
    names = ("past_k", "past_v")
    ours = session.to_device({name: np.full((2, ROOM, WIDTH), np.nan, "f4") for name in names})
    theirs = {name: np.zeros((2, 0, WIDTH), "f4") for name in names}
    rows = 0
    for new in (67, 1, 1, 3):
        feeds = {"x": generator.standard_normal((2, new, WIDTH)).astype("f4")}
        out = {session.states[name]: array for name, array in ours.items()}
        result = session.run({**feeds, **ours, "past": np.zeros(rows, "?")}, out)["y"]
        expected, *caches = peer.run(None, {**feeds, **theirs})
        theirs = dict(zip(names, caches, strict=True))
        rows += new
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
        for name, each in ours.items():
            driver.download(found := np.empty(each.shape, each.dtype), each.address)
            np.testing.assert_allclose(found[:, :rows], theirs[name], rtol=1e-4, atol=1e-5)
            assert np.isnan(found[:, rows:]).all()
    assert driver.findings == []


def test_groups_behind_an_update_are_verified_at_the_rows_that_there_are(decoder):
    folder, plan, body = decoder
    options = VerifyOptions(sizes=({"b": 2, "new": 3, "past": 4, "capacity": 9},))
    with in_this_process():
        outcome = verify(folder, plan, body, folder / "m.onnx", options, because="no GPU here")
    assert (outcome.report["verdict"], outcome.report["verified_on"]) == ("pass", "emulator")
