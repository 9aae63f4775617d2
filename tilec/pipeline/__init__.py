"""The pipeline: import, schedule, codegen, verify, each from the artifact before it."""

from tilec.pipeline.job import DEVICE_FILE, FILES, RECIPE_FILE, Job, Listener, StageInput, read_run, read_source
from tilec.pipeline.read_plan import ReadPlan, counted_anew, read_plan
from tilec.pipeline.stages import STAGES, compile_model, run_stage, stage_named
from tilec.pipeline.steps.schedule import bind_sizes
from tilec.pipeline.steps.verify import model_file

__all__ = [
    "DEVICE_FILE",
    "FILES",
    "RECIPE_FILE",
    "STAGES",
    "Job",
    "Listener",
    "ReadPlan",
    "StageInput",
    "bind_sizes",
    "compile_model",
    "counted_anew",
    "model_file",
    "read_plan",
    "read_run",
    "read_source",
    "run_stage",
    "stage_named",
]
