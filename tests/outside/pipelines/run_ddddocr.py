import ddddocr
from samples import page, png, show

show([
    ddddocr.DdddOcr(show_ad=False).classification(png(page(520, 90))),
    ddddocr.DdddOcr(show_ad=False, det=True, ocr=False).detection(png(page())),
])  # fmt: skip
