from captcha_recognizer.slider import Slider
from samples import drawing, png, show

show(Slider().identify(png(drawing(480, 300))))
