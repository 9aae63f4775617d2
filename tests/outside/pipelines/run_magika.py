from magika import Magika
from samples import drawing, png, show

files = (b"import os\n\n\ndef main():\n    print(os.getcwd())\n", png(drawing()), b'{"key": [1, 2, {"a": null}]}' * 9)
results = [Magika().identify_bytes(each) for each in files]
show([(each.output.label, each.score) for each in results])
