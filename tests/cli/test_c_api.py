"""Models as C programs: the same bits as in Python, from several threads, and refusals in C."""

import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from acceptance.miniatures import shrunk
from onnx import helper, numpy_helper
from state_models import window

from cli import models
from tilec import zoo
from tilec.codegen.cpu.c_api.emit import c_identifier
from tilec.runtime import load

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None or shutil.which("objcopy") is None, reason="no C compiler"),
    pytest.mark.feature("B20", "B21"),
]

CALLERS = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "first.h"
#include "second.h"

static tilec_session *session;
static float expected[8 * 300];

static tilec_tensor tensor(void *data, size_t bytes, int64_t rows, int64_t columns) {
    tilec_tensor made = {data, bytes, TILEC_F32, 2, {rows, columns}};
    return made;
}

static void *call(void *argument) {
    static float x[16 * 300];
    float y[8 * 300];
    for (int round = 0; round < 200; round++) {
        int rows = 1 + (round * 7 + *(int *)argument) % 300;
        tilec_tensor in = tensor(x, sizeof x, rows, 16), out = tensor(y, sizeof y, 0, 0);
        if (first_run(session, &in, &out) || out.shape[0] != rows || memcmp(y, expected, 32 * (size_t)rows))
            return argument;
    }
    return NULL;
}

int main(void) {
    static float x[16 * 300];
    pthread_t callers[4];
    int numbers[4] = {0, 1, 2, 3}, failed = 0;
    tilec_session *other = NULL;
    tilec_tensor in = tensor(x, sizeof x, 300, 16), out = tensor(expected, sizeof expected, 0, 0);
    if (first_open(TILEC_C_ABI + 1, ".", 2, &session) != TILEC_BAD_ABI) return 2;
    if (first_open(TILEC_C_ABI, "nowhere", 2, &session) != TILEC_BAD_FILE) return 3;
    if (first_open(TILEC_C_ABI, ".", 2, &session) || second_open(TILEC_C_ABI, ".", 1, &other)) return 4;
    if (first_run(session, &in, &out)) return 5;
    for (int n = 0; n < 4; n++) pthread_create(&callers[n], NULL, call, &numbers[n]);
    for (int n = 0; n < 4; n++) {
        void *result;
        pthread_join(callers[n], &result);
        failed |= result != NULL;
    }
    if (failed) return 6;
    in = tensor(x, 16, 300, 16);
    if (first_run(session, &in, &out) != TILEC_BAD_ARGUMENT) return 7;
    puts(first_error());
    in = tensor(x, sizeof x, 300, 15);
    if (first_run(session, &in, &out) != TILEC_BAD_ARGUMENT) return 8;
    puts(first_error());
    in = tensor(x, sizeof x, 3, 16), out = tensor(x, sizeof x, 0, 0);
    if (first_run(session, &in, &out) != TILEC_BAD_ARGUMENT) return 9;
    puts(first_error());
    first_close(session);
    second_close(other);
    return 0;
}
"""


STARTING = r"""
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>
#include "model.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static long peak(void) {
    char line[256];
    long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmHWM:", 6)) kilobytes = atol(line + 6);
    if (file) fclose(file);
    return kilobytes;
}

int main(void) {
    static int64_t ids[4 * 64];
    static float out[4 * 64 * CHANNELS], pooled[4 * CHANNELS];
    tilec_session *session;
    double begin = now();
    if (model_open(TILEC_C_ABI, ".", 2, &session)) return 1;
    double opened = now();
    for (int n = 0; n < 8; n++) {
        int64_t batch = 1 + n % 4, seq = 64 - 7 * n;
        tilec_tensor in[3], y[2] = {{out, sizeof out, TILEC_F32, 3, {0}}, {pooled, sizeof pooled, TILEC_F32, 2, {0}}};
        for (int i = 0; i < 3; i++) {
            tilec_tensor each = {ids, sizeof ids, TILEC_I64, 2, {batch, seq}};
            in[i] = each;
        }
        if (model_run(session, in, y)) { puts(model_error()); return 2; }
        if (y[0].shape[0] != batch || y[0].shape[1] != seq || y[1].shape[0] != batch) return 3;
    }
    printf("%.3f %ld\n", opened - begin, peak());
    model_close(session);
    return 0;
}
"""
"""A bert with dynamic sizes: milliseconds until it is open, and the peak of its memory in KiB after eight runs."""


def lookup(path: Path) -> Path:
    """Rows of a table less elements at two coordinates, y = table[i] - table[j, k], and the scores of labels but -9;
    how many there are varies."""
    table = numpy_helper.from_array(np.arange(28, dtype=np.float32).reshape(7, 4), "table")
    i, labels = (helper.make_tensor_value_info(name, 7, ["n"]) for name in ("i", "labels"))
    jk = helper.make_tensor_value_info("jk", 7, ["n", 1, 2])
    nodes = [
        helper.make_node("Gather", ["table", "i"], ["rows"], name="look"),
        helper.make_node("GatherND", ["table", "jk"], ["elements"], name="pick"),
        helper.make_node("Sub", ["rows", "elements"], ["y"]),
        helper.make_node("NegativeLogLikelihoodLoss", ["y", "labels"], ["l"], ignore_index=-9, reduction="none"),
    ]
    return models.save(path, nodes, [i, jk, labels], [models.value("y", "n", 4), models.value("l", "n")], [table])


def built(cli, tmp_path: Path, name: str) -> Path:
    ran = cli("compile", f"{name}.onnx", "--device", "avx2")
    assert ran.code == 0, ran.err
    ran = cli("codegen", f"{name}.tilec", "--emit", "c-api", "--threads", "2")
    assert ran.code == 0, ran.err
    return tmp_path / f"{name}.tilec" / "c-api"


def compiled(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def started(folder: Path, *command: object) -> tuple[int, str, str]:
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_c_program_has_the_bits_of_python_at_every_size(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", "batch")
    folder = built(cli, tmp_path, "model")
    compiled(folder, "cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "main.c", "-L.", "-lmodel",
             "-Wl,-rpath,$ORIGIN", "-o", "shared")  # fmt: skip
    compiled(folder, "cc", "-std=c99", "main.c", "libmodel.a", "-lm", "-lpthread", "-o", "static")
    (folder / "test.cpp").write_text('#include "model.h"\nint main() { return model_abi() != TILEC_C_ABI; }\n')
    compiled(folder, "c++", "-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror", "test.cpp", "libmodel.a", "-lm",
             "-o", "plus")  # fmt: skip
    assert started(folder, "./plus")[0] == 0
    needed = subprocess.run(["ldd", "libmodel.so"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert not any(word in needed for word in ("tvm", "python"))
    session = load(folder.parent, threads=2)
    for program, rows in (("./shared", 1), ("./static", 0), ("./shared", 37), ("./static", 512)):
        x = np.random.default_rng(rows).standard_normal((rows, 16), np.float32)
        x[: rows // 3] = np.nan
        x.tofile(folder / "x.bin")
        assert started(folder, program, ".", "x.bin", rows) == (0, f"output-0.bin: y [{rows}, 8]\n", "")
        assert (folder / "output-0.bin").read_bytes() == session.run({"x": x})["y"].tobytes()


def test_threads_call_one_session_beside_another_model(cli, tmp_path):
    models.mlp(tmp_path / "first.onnx", "batch")
    models.mlp(tmp_path / "second.onnx")
    first, second = built(cli, tmp_path, "first"), built(cli, tmp_path, "second")
    for file in second.iterdir():
        shutil.copyfile(file, first / file.name)
    (first / "callers.c").write_text(CALLERS)
    compiled(first, "cc", "-O1", "callers.c", "libfirst.a", "libsecond.a", "-lm", "-lpthread", "-o", "callers")
    code, out, err = started(first, "./callers")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "input 'x' has 16 bytes, 19200 are needed",
        "input 'x' has 15 along dimension 1, the model has 16 there",
        "output 'y' overlaps input 'x'",
    ]


def test_indices_and_sizes_out_of_range_are_refused(cli, tmp_path):
    lookup(tmp_path / "rows.onnx")
    folder = built(cli, tmp_path, "rows")
    compiled(folder, "cc", "main.c", "librows.a", "-lm", "-o", "main")

    def run(i, jk, labels):
        for name, values in {"i": i, "jk": jk, "labels": labels}.items():
            np.array(values, np.int64).tofile(folder / f"{name}.bin")
        code, _, err = started(folder, "./main", ".", "i.bin", 2, "jk.bin", 2, "labels.bin", 2)
        return err if code else np.fromfile(folder / "output-0.bin", np.float32).tolist()

    good = ([6, -7], [[-7, 3], [6, -4]], [3, -9])
    assert run(*good) == [21, 22, 23, 24, -24, -23, -22, -21]
    assert np.fromfile(folder / "output-1.bin", np.float32).tolist() == [-24, 0]
    refused = {
        "input 'i' has the index -8, outside of -7 to 6: look looks it up\n": ([6, -8], *good[1:]),
        "input 'jk' has the index 7, outside of -7 to 6: pick looks it up\n": (good[0], [[0, 3], [7, 3]], good[2]),
        "input 'jk' has the index -5, outside of -4 to 3: pick looks it up\n": (good[0], [[0, 3], [6, -5]], good[2]),
        "input 'labels' has the index -8, outside of -4 to 3: ": (*good[:2], [-8, -9]),
    }
    for message, feeds in refused.items():
        assert run(*feeds).startswith(message)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channels", "size"), [(24, shrunk("bert-base")), pytest.param(768, nullcontext(), marks=pytest.mark.slow)]
)
def test_a_bert_of_any_size_opens_at_once_and_takes_its_weights_and_arena(cli, tmp_path, channels, size):
    with size:
        zoo.export("bert-base", tmp_path / "model.onnx", dynamic=True)
    folder = built(cli, tmp_path, "model")
    (folder / "start.c").write_text(f"#define CHANNELS {channels}\n{STARTING}")
    compiled(folder, "cc", "-O1", "start.c", "libmodel.a", "-lm", "-lpthread", "-o", "start")
    code, out, err = started(folder, "./start")
    assert (code, err) == (0, ""), out
    milliseconds, kilobytes = map(float, out.split())
    assert milliseconds <= 50
    session = load(folder.parent, threads=2)
    session.run({port.name: np.zeros((2, 57), np.int64) for port in session.inputs})
    (run,) = session._executor._processes[0][1]
    arena = sum(block.nbytes for block in run._memory.arenas) + run._scratch.nbytes
    weights = sum(path.stat().st_size for path in folder.glob("weights-*"))
    assert 1024 * kilobytes <= weights + 2 * arena + 10e6
    if channels == 24 and shutil.which("valgrind"):
        judge = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=all", "./start")
        assert started(folder, *judge)[::2] == (0, "")


def test_what_needs_python_is_refused(cli, tmp_path):
    models.selection(tmp_path / "model.onnx")
    assert cli("compile", "model.onnx", "--device", "avx2").code == 0
    ran = cli("codegen", "model.tilec", "--emit", "c-api")
    assert ran.code == 5
    assert "a C program cannot run this model: it runs" in ran.err
    assert "no form 'rust'" in cli("codegen", "model.tilec", "--emit", "rust").err


@pytest.mark.parametrize(("name", "prefix"), [("resnet-50", "resnet_50"), ("3d/Net", "model_3d_net"), ("é", "model")])
def test_names_become_identifiers(name, prefix):
    assert c_identifier(name) == prefix


STATE = r"""
#include <stdio.h>
#include <string.h>
#include "kept.h"

int main(void) {
    static float past[90], rows[30], other[90], mean;
    tilec_session *session;
    if (kept_open(TILEC_C_ABI, ".", 1, &session)) return 1;
    for (int n = 0; n < 90; n++) past[n] = (float)n;
    for (int n = 0; n < 30; n++) rows[n] = 3;
    tilec_tensor in[2] = {{past, sizeof past, TILEC_F32, 3, {3, 6, 5}}, {rows, sizeof rows, TILEC_F32, 3, {3, 2, 5}}};
    tilec_tensor apart[2] = {{other, sizeof other, TILEC_F32, 3, {0}}, {&mean, sizeof mean, TILEC_F32, 0, {0}}};
    if (kept_run(session, in, apart)) { puts(kept_error()); return 2; }
    if (past[12] != 12 || other[12] != 9 || other[9] != 9 || other[20] != 20) return 3;
    tilec_tensor same[2] = {in[0], apart[1]};
    if (kept_run(session, in, same)) { puts(kept_error()); return 4; }
    if (memcmp(past, other, sizeof past)) return 5;
    same[0].data = past + 1;
    same[0].bytes = sizeof past;
    if (!kept_run(session, in, same)) return 6;
    puts(kept_error());
    kept_close(session);
    return 0;
}
"""


def test_a_state_is_one_memory_or_a_copy_first(cli, tmp_path):
    window(tmp_path / "kept.onnx")
    (tmp_path / "r.yaml").write_text("kind: compile\nstate: in-place\n")
    ran = cli("compile", "kept.onnx", "--device", "avx2", "--recipe", "r.yaml")
    assert ran.code == 0, ran.err
    assert cli("codegen", "kept.tilec", "--emit", "c-api", "--threads", "1").code == 0
    folder = tmp_path / "kept.tilec" / "c-api"
    (folder / "state.c").write_text(STATE)
    compiled(folder, "cc", "-std=c99", "-Wall", "-Werror", "state.c", "libkept.a", "-lm", "-lpthread", "-o", "state")
    assert started(folder, "./state") == (0, "output 'present' overlaps input 'past'\n", "")
