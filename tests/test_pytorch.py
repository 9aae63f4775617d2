"""What tilec offers to users of PyTorch, where that is not installed."""

import subprocess
import sys

import pytest

from tilec.extras import install


@pytest.mark.parametrize("call", ["from_exported(None)", "capture_rnn(None)"])
def test_the_fix_is_told_where_pytorch_is_not_installed(call):
    code = f"import sys; sys.modules['torch'] = None; import tilec; tilec.{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"UnavailableError: PyTorch is not installed\n  Run `{install('torch')}`." in done.stderr


def test_public_names_import_no_pytorch():
    code = "import sys; from tilec import *; assert 'torch' not in sys.modules; from_exported, capture_rnn"
    subprocess.run([sys.executable, "-c", code], check=True)
