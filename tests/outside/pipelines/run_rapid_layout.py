from rapid_layout import RapidLayout
from samples import page, show

boxes, scores, names = tuple(RapidLayout()(page(640, 800)))[:3]
show([boxes, scores, names])
