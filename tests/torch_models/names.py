"""`python -m tests.torch_models.names`: the models and where they come from, as JSON."""

import json

from tests.torch_models.models import CASES

if __name__ == "__main__":
    print(json.dumps({name: case.family for name, case in CASES.items()}))
