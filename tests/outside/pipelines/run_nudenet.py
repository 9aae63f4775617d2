from nudenet import NudeDetector
from samples import drawing, show

show(NudeDetector().detect(drawing()))
