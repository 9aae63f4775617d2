from piper.hebrew import NakdimonDiacritizer
from piper.tashkeel import TashkeelDiacritizer
from samples import show

show([TashkeelDiacritizer()("اللغة العربية جميلة"), NakdimonDiacritizer()("שלום עולם")])
