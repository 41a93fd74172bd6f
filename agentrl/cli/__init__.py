"""The command line: one file a verb, with `add_arguments(parser)` and `run(arguments)`.

Verbs import what they need inside `run`, the one exception to the rule about imports: `agentrl train --help` must
answer in a tenth of a second, and importing torch takes two.
"""
