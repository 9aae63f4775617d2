import sys

from tests.cpu_limit import run_limited


def test_processes_of_a_command_count_and_end_with_it_at_the_limit() -> None:
    forever = "while True: pass"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {forever!r}])"
    done = run_limited([sys.executable, "-c", nested], 0.3)
    assert done.ended == "not done in 0 CPU s"
    assert 0.3 < done.seconds < 10
    assert done.code < 0


def test_a_command_that_ends_by_itself_has_its_code_and_texts() -> None:
    done = run_limited(
        [sys.executable, "-c", "import sys; print('out'); print('no', file=sys.stderr); sys.exit(3)"], 60
    )
    assert (done.code, done.output, done.errors, done.ended) == (3, "out\n", "no\n", "")
    assert done.seconds > 0
