"""Start a vLLM server for a configuration; runs of it sample there with --set engine.url=http://HOST:PORT.

It serves token ids to whoever reaches HOST and takes new weights from them, so keep it in a network of your own. It has
the settings of section engine: context_tokens, dtype, cache_gib, and options, which are further arguments of vLLM's.
"""

import argparse
import os
import sys

from agentrl.cli.parser import add_set, whole

EXAMPLE = "agentrl serve quickstart --port 8000 --set engine.options.max_num_seqs=128"
FOR_VLLM = {
    "VLLM_SERVER_DEV_MODE": "1",  # the routes that take weights
    "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",  # or else vLLM leaves a core of a small machine idle
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("config", metavar="CONFIG", help="a configuration's name or file")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at; 127.0.0.1, this machine, by default")
    parser.add_argument("--port", type=whole(1), default=8000, metavar="N", help="port to listen at; 8000 by default")
    add_set(parser)


def run(arguments: argparse.Namespace) -> int:
    """Becomes the server."""
    import torch
    from transformers import AutoConfig

    from agentrl import assembly
    from agentrl.config import load_config
    from agentrl.engines import _vllm_install, _vllm_settings

    config = load_config(arguments.config, [*arguments.set, "engine.name=vllm"]).config
    _vllm_install.require()
    source = assembly.model_source(config)
    engine = _vllm_settings.engine_arguments(
        AutoConfig.from_pretrained(source),
        config.engine,
        dtype=config.model.dtype,
        device=torch.device("cuda" if torch.cuda.is_available() else "cpu"),
    )
    words = _vllm_settings.server_command(source, engine, host=arguments.host, port=arguments.port)
    os.environ.update(FOR_VLLM)
    os.execv(sys.executable, [sys.executable, *words])
