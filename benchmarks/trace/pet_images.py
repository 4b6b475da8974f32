"""Write the JPEG files of noise, 320x240, that the Keras program in ``foreign.toml`` reads.

``python benchmarks/trace/pet_images.py FOLDER/data/pets`` writes them, before ``run.py``.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

rng = np.random.default_rng(0)
for kind in ("Cat", "Dog"):
    folder = Path(sys.argv[1]) / "PetImages" / kind
    folder.mkdir(parents=True)
    for n in range(6):
        name = 6779 if kind == "Cat" and not n else n  # the program reads this cat by its name
        noise = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((320, 240), Image.BILINEAR).save(folder / f"{name}.jpg")
