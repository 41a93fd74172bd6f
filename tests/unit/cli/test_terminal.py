from agentrl.cli.terminal import facts, interval, say, share, table


def test_columns_line_up_and_lines_do_not_wrap(capsys):
    table([("name", "what"), ("a", "x" * 200), ("long name", "y")])
    assert capsys.readouterr().out.splitlines() == [
        "  name       what",
        f"  a          {'x' * 200}",
        "  long name  y",
    ]


def test_facts_stand_below_one_another(capsys):
    facts([("env", "Guess"), ("algorithm", "grpo")])
    assert capsys.readouterr().out == "  env        Guess\n  algorithm  grpo\n"


def test_output_that_is_no_terminal_has_no_color_codes(capsys):
    say("[bold] is text, not markup", style="bold red")
    assert capsys.readouterr().out == "[bold] is text, not markup\n"


def test_shares_and_intervals_are_told_in_percent():
    assert share(0.1234) == "12.3 %"
    assert interval((0.1, 0.25)) == "[10.0, 25.0]"
