from rapid_layout import RapidLayout
from samples import page, show

found = RapidLayout()(page(640, 800))
show([found.boxes, found.scores, found.class_names])
