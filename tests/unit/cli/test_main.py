import subprocess
import sys

import pytest

from agentrl import __version__
from agentrl.cli.main import HELP, VERBS, main

SLOW_MODULES = {"torch", "transformers", "pydantic", "gymnasium", "rich"}


def test_help_of_every_verb_loads_no_slow_module():
    script = (
        "import sys\n"
        "from agentrl.cli.main import VERBS, main\n"
        "for verb in ['', *VERBS]:\n"
        "    try:\n"
        "        main([*verb.split(), '--help'])\n"
        "    except SystemExit as end:\n"
        "        assert end.code == 0\n"
        "print('loaded', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("loaded")[2].split())
    assert "agentrl.cli.doctor" in loaded
    assert not SLOW_MODULES & loaded


@pytest.mark.parametrize("verb", VERBS)
def test_help_ends_with_one_example_of_the_verb(verb, capsys):
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    *_, title, example = capsys.readouterr().out.rstrip().splitlines()
    assert title == "example:"
    assert f"{example} ".startswith(f"  agentrl {verb} ")


def test_without_arguments_every_verb_is_listed(capsys):
    assert main([]) == 2
    assert capsys.readouterr().out == HELP
    assert all(f"\n  {verb} " in HELP for verb in VERBS)


def test_the_version_is_told(agentrl):
    assert agentrl("--version") == f"agentrl {__version__}\n"


def test_an_unknown_verb_is_answered_with_the_nearest(agentrl):
    assert agentrl.fails("trian").startswith("agentrl: no verb 'trian'. Did you mean 'train'? There are: train, sft,")


def test_an_unknown_option_is_answered_with_the_nearest(agentrl):
    message = agentrl.fails("train", "guess.yaml", "--stesp", "3")
    assert message == "agentrl: train: unexpected '--stesp'. Did you mean '--steps'? see 'agentrl train --help'"


def test_an_unknown_option_of_a_sub_verb_is_answered_with_the_nearest(agentrl):
    assert "Did you mean '--episodes'?" in agentrl.fails("envs", "check", "agentrl/Guess-v0", "--epsiodes=3")


def test_an_option_before_the_verb_is_refused(agentrl):
    assert "no option --foo before the verb" in agentrl.fails("--foo", "train")


def test_debug_shows_where_a_mistake_was_found(capsys):
    assert main(["config", "explain", "training.step", "--debug"]) == 2
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.endswith("agentrl: no setting 'training.step'. Did you mean 'training.steps'?\n")


def test_debug_may_stand_before_the_verb(capsys):
    assert main(["--debug", "config", "explain", "training.step"]) == 2
    assert "Traceback" in capsys.readouterr().err
