"""TRL's environment loop and GRPO on our environments, through its `environment_factory`.

TRL is looked for, not installed. Its loop knows tools: here the whole answer is the argument of the one tool `step`. An
episode that is over shows an empty observation, and the answer to that calls no tool, which is how its loop ends.
"""

import copy
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from agentrl.bench.rollouts import Clock, Workload
from agentrl.chat import ChatFormat
from agentrl.trajectory import Message

_TOOLS_AS_USERS = (
    "{%- set said = namespace(all=[]) %}{%- for m in messages %}"
    "{%- if m.role == 'tool' %}{%- set said.all = said.all + [{'role': 'user', 'content': m.content}] %}"
    "{%- elif m.tool_calls %}{%- set said.all = said.all + "
    "[{'role': 'assistant', 'content': (m.content or '') ~ (m.tool_calls | tojson)}] %}"
    "{%- else %}{%- set said.all = said.all + [m] %}{%- endif %}{%- endfor %}{%- set messages = said.all %}"
)


def trl_loop(work: Workload) -> Callable[[], dict[str, float]]:
    """Gives what plays the games in TRL's loop; only the loop is timed, not its resets."""
    trainer = trl_trainer(work, num_generations=2, learning_rate=1e-6, max_steps=1)
    rows = [{"prompt": _opening(work), "task_id": task.id, "seed": task.seed % 2**31} for task in work.tasks]
    generate = trainer._generate
    found: dict[str, float] = {}

    def timed(prompts: list[Any]) -> Any:
        clock = Clock()
        made = generate(prompts)
        num_turns = sum(environment.num_turns for environment in trainer.environments)
        found.update(clock.row(num_turns, sum(sum(mask) for mask in made[2])))
        return made

    trainer._generate = timed

    def play() -> dict[str, float]:
        torch.manual_seed(0)
        trainer._generate_and_score_completions(rows)
        return dict(found)

    return play


def trl_train(
    work: Workload, target: float, most_steps: int, *, num_generations: int, learning_rate: float
) -> list[float]:
    """Gives the mean reward of each step of TRL's GRPO, up to the first that reaches `target`."""
    from transformers import PrinterCallback, TrainerCallback

    trainer = trl_trainer(work, num_generations=num_generations, learning_rate=learning_rate, max_steps=most_steps)
    rewards: list[float] = []

    class Stop(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            del args, state, rest
            rewards.append(sum(game.get_reward() for game in trainer.environments) / len(trainer.environments))
            control.should_training_stop = rewards[-1] >= target

    trainer.add_callback(Stop())
    trainer.remove_callback(PrinterCallback)  # what it prints would stand in our output
    trainer.train()
    return rewards


def trl_trainer(work: Workload, *, num_generations: int, learning_rate: float, max_steps: int) -> Any:
    """Gives TRL's GRPOTrainer on the games, which samples one group-divided batch of all of them a step."""
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from datasets.table import InMemoryTable  # pyright: ignore[reportMissingImports]
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]

    rows = [{"prompt": _opening(work), "task_id": task.id, "seed": task.seed % 2**31} for task in work.tasks]
    num_episodes = len(rows)
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=not torch.cuda.is_available(),
        bf16=False,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        per_device_train_batch_size=num_episodes,
        num_generations=num_generations,
        max_completion_length=work.agent.context_tokens,
        temperature=work.params.temperature,
        generation_kwargs={"max_new_tokens": work.params.max_tokens, "eos_token_id": sorted(work.params.stop_ids)},
        learning_rate=learning_rate,
        lr_scheduler_type="constant",
        loss_type="grpo",
        max_steps=max_steps,
    )
    return GRPOTrainer(
        model=work.model(),
        reward_funcs=None,
        args=config,
        train_dataset=Dataset(InMemoryTable.from_pylist(rows[::num_generations]), fingerprint="games"),
        processing_class=tool_tokenizer(work.weights.chat),
        environment_factory=environment_class(work),
    )


def tool_tokenizer(chat: ChatFormat) -> PreTrainedTokenizerBase:
    """Gives the tokenizer as TRL wants it: its template knows tools, and it reads each answer as a call of `step`."""
    tokenizer: Any = copy.deepcopy(chat.tokenizer)
    tokenizer.chat_template = _TOOLS_AS_USERS + str(tokenizer.chat_template)
    tokenizer.response_template = {}
    over = chat.extend((chat.end_id,), Message("user", ""))[1:]

    def parse_response(ids: Sequence[int], *, prefix: Sequence[int], tools: object = None) -> dict[str, Any]:
        del tools
        text = chat.decode(ids)
        call = {"type": "function", "function": {"name": "step", "arguments": {"action": text}}}
        calls = [] if tuple(prefix[-len(over) :]) == over else [call]
        return {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})

    tokenizer.parse_response = parse_response
    return tokenizer


def environment_class(work: Workload) -> type[Any]:
    """Gives the games as TRL's environments."""
    speaker = work.agent.speaker

    class Game:
        def __init__(self) -> None:
            self._env = work.make_env()
            self.num_turns, self._reward, self._over = 0, 0.0, False

        def reset(self, *, task_id: str, seed: int, **row: Any) -> str:
            del row
            self.num_turns, self._reward, self._over = 0, 0.0, False
            observation, info = self._env.reset(seed=seed, options={"task_id": task_id})
            return speaker.prompt.opening((), observation, info)[-1].content

        def step(self, action: str) -> str:
            """Acts.

            Args:
                action: What to do.

            Returns:
                What is seen then.
            """
            found = speaker.prompt.action(action)
            sent = action.strip() if found is None else found
            observation, reward, terminated, truncated, info = self._env.step(sent)
            self.num_turns += 1
            self._reward += float(reward)
            self._over = terminated or truncated
            return "" if self._over else speaker.prompt.following((), observation, info).content

        def get_reward(self) -> float:
            return self._reward

    return Game


def _opening(work: Workload) -> list[dict[str, str]]:
    """Gives the prompt of all games, whose first observation TRL appends."""
    system = work.agent.speaker.prompt.system
    return [{"role": "system", "content": system}] * bool(system) + [{"role": "user", "content": ""}]
