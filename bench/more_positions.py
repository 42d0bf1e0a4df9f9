"""A copy of a trained Marian with more positions, so that it can decode longer texts. Its positions are sinusoids.

python bench/more_positions.py MODEL OUT POSITIONS
"""

import json
import shutil
import sys
from pathlib import Path

from safetensors.torch import load_file, save_file


def main() -> None:
    source, out, positions = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    shutil.copytree(source, out)
    config = json.loads((out / "config.json").read_text())
    (out / "config.json").write_text(json.dumps(config | {"max_position_embeddings": positions}, indent=2))
    weights = load_file(out / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "embed_positions" not in name}  # made when it is loaded
    save_file(kept, out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main()
