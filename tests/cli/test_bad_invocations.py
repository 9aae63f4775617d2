"""A hundred ways to call every verb wrongly: the right exit code, a message, nothing on stdout, nothing written."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli import models
from cli.test_main import ENVIRONMENT, VERBS

FAILED, USAGE, MISMATCH, UNSUPPORTED, UNAVAILABLE = 1, 2, 4, 5, 6

BAD: dict[int, str] = {
    FAILED: """
        import model.onnx -o model.onnx/g.json
        zoo export nerf-mlp -o model.onnx/m.onnx
        diff p slow --fail-on groups=+0%
        lint key.yaml
        lint broken
        lint few.yaml --strict
    """,
    USAGE: """
        frobnicate
        --frobnicate
        import
        import none.onnx
        import dir.onnx
        import empty.onnx
        import text.onnx
        import cycle.onnx
        import model.onnx other.onnx
        import model.onnx --shape batch
        import model.onnx --shape batch=0x4
        import model.onnx --shape batch=-1
        import model.onnx --shape height=4
        import sym.onnx --shape batch=4,batch=5
        import model.onnx --recipe none.yaml
        import model.onnx --recipe defualt
        import model.onnx --recipe bad.yaml
        import model.onnx --recipe key.yaml
        import model.onnx --recipe sensitivity
        import model.onnx --strcit
        schedule
        schedule none.json
        schedule empty --device a100
        schedule model.onnx
        schedule p/2-plan.json
        schedule broken
        schedule p --device a1000
        schedule p --device device.yaml
        schedule p --device none.yaml
        schedule p --device dir.onnx
        schedule p --device a100 --budget 0
        schedule p --device a100 --budget ten
        schedule p --device a100 --shape batch=3
        schedule p --device a100 --record none.json -o q.json
        schedule p --device a100 --recipe closed.yaml -o q.json
        schedule p --device a100 --recipe passes.yaml -o q.json
        codegen
        codegen p/1-graph.json
        codegen p --threads 0
        codegen p --device v100
        codegen broken
        codegen wrong
        codegen empty
        verify
        verify p/3-kernels.json/x
        verify empty
        verify broken
        verify p -o x
        verify p --inputs none.npz
        verify p --inputs model.onnx
        verify p --reduce --junit x.xml
        verify p --reduce
        verify p --model other.onnx
        verify p --recipe seeds.yaml
        compile
        compile none.onnx --device a100
        compile model.onnx --device a100 --from codgen
        compile model.onnx --device a100 --from verify --to import
        compile model.onnx --device a100 --to bench
        compile model.onnx --device a100 --from schedule -o empty
        compile model.onnx --device ''
        compile model.onnx --threads many
        compile model.onnx --threads 4097
        bench p --threads 99999999999999999999
        capture none.json
        compile model.onnx --device a100 --record none.json -o q
        codegen p --emit nosuch
        verify p --junit ''
        run
        run none
        run empty
        run none.onnx
        run tiles
        run model.onnx --input x
        run model.onnx --repeat 0
        run model.onnx --seed -1
        run tiles --shape batch=4
        bench
        bench none.onnx
        bench nosuchmodel
        bench p --against onnxrumtime
        bench p --rounds 0
        bench p --bar -1
        bench --recipe default
        diff
        diff p
        diff p none
        diff p/2-plan.json p/1-graph.json
        diff - -
        diff p p --format xml
        diff p p --fail-on trafic=+5%
        diff p p --fail-on traffic
        explain nosuchcode
        explain p --group nosuchgroup
        explain p --edge a-b
        explain p --node nosuchnode
        explain none/2-plan.json --group g
        inspect
        inspect none.onnx
        inspect empty
        inspect broken/2-plan.json
        inspect key.yaml
        inspect p --select nothing
        inspect model.onnx --select 'nothing*'
        bounds
        bounds 'C[m] = sum(k A[m,k])'
        bounds 'C[m] = sum(k, A[m,k])'
        bounds 'C[m] = sum(k, A[m,k])' --dims m=4
        bounds 'C[m] = sum(k, A[m,k])' --dims m=4,k=0
        bounds nosuchworkload
        bounds gqa --capacity 1XB
        bounds gqa --mapspace every
        bounds gqa --device a1000
        report
        report nosuchmodel --device a100
        report nerf-mlp --device a1000
        report nerf-mlp --device a100 --fusion most
        report nerf-mlp --device a100 --format html
        report p wrong -o r.html
        lint
        lint none.yaml
        lint model.onnx
        lint empty
        lint a100 --format xml
        lint a100 --json --format github
        schema
        schema plan
        doctor now
        device
        device show
        device show a1000
        device show device.yaml
        device list a100
        device probe --frobnicate
        zoo
        zoo export
        zoo export bert-bse
        zoo export nerf-mlp --batch two
        zoo export nerf-mlp --form fuse
        cache
        cache why
        cache why none.onnx
        cache clear --frobnicate
    """,
    UNSUPPORTED: """
        import odd.onnx --strict
        compile odd.onnx --device a100 --strict
    """,
    UNAVAILABLE: """
        run model.onnx --device a100
        schedule p --device a100 --profile -o q.json
    """,
}
"""Exit code -> command lines."""

LINES = [(code, line.strip()) for code, text in BAD.items() for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def material(tmp_path_factory) -> Path:
    """A folder of things to name: models and artifacts, sound and broken."""
    folder = tmp_path_factory.mktemp("material")
    models.mlp(folder / "model.onnx")
    models.mlp(folder / "sym.onnx", batch="batch")
    models.unary(folder / "odd.onnx", "NonZero")
    models.unary(folder / "other.onnx", "Exp")
    models.cycle(folder / "cycle.onnx")
    (folder / "empty.onnx").touch()
    (folder / "text.onnx").write_text("a model")
    for name in ("dir.onnx", "empty", "broken", "wrong"):
        (folder / name).mkdir()
    yaml = {
        "bad": "schedule: [",
        "key": "schedule: {fuson: full}",
        "few": "verify: {seeds: [0]}",
        "seeds": "verify: {seeds: []}",
        "closed": "schedule: {closed: [l9]}",
        "passes": "schedule: {passes: [folding]}",
        "device": "name: d\nkind: gpu\n",
        "slow": "schedule: {fusion: none, bounds: false}",
        "quick": "schedule: {bounds: false}",
    }
    for name, text in yaml.items():
        (folder / f"{name}.yaml").write_text(text + "\n")
    lines = [
        ["compile", "model.onnx", "--recipe", "quick.yaml", "--to", "codegen", "-o", "p", "--device", "a100"],
        ["compile", "model.onnx", "--recipe", "quick.yaml", "--to", "codegen", "-o", "tiles", "--device", "ipu-mk2"],
        ["compile", "model.onnx", "--recipe", "slow.yaml", "--to", "schedule", "-o", "slow", "--device", "a100"],
    ]
    program = f"""
import sys
from tilec.cli.app import app
for line in {lines!r}:
    app(line, standalone_mode=False)
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for number, name in enumerate(("1-graph", "2-plan", "3-kernels"), 1):
        (folder / "broken" / f"{name}.json").write_text("{"[: number % 2])
        shutil.copy(folder / "p" / "1-graph.json", folder / "wrong" / f"{name}.json")
    return folder


def test_there_are_a_hundred_and_every_verb_is_among_them() -> None:
    assert len(LINES) >= 100
    assert len({line for _, line in LINES}) == len(LINES)
    for verb in VERBS:
        assert any(line.startswith(verb) for _, line in LINES) or verb in ("cache list", "zoo list"), verb


@pytest.mark.slow_cases("import model.onnx -o model.onnx/g.json")
@pytest.mark.parametrize(("code", "line"), LINES, ids=[line for _, line in LINES])
def test_a_bad_invocation(cli, listing, material, tmp_path, code, line):
    shutil.copytree(material, tmp_path, symlinks=True, dirs_exist_ok=True)
    before = listing()
    ran = cli(*shlex.split(line))
    assert ran.code == code, ran.err
    said = [text for text in ran.err.splitlines() if text.strip()]
    assert said, "nothing is said"
    assert "Traceback" not in ran.err
    assert "This is a bug" not in ran.err
    assert ran.out == "" or line.startswith(("lint", "diff")), "data of a command that failed"
    assert listing() == before
