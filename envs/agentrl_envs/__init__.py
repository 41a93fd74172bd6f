"""The environments that ship with agentrl; importing this registers them and loads none."""

import gymnasium

gymnasium.register("agentrl/Guess-v0", entry_point="agentrl_envs.guess:Guess", max_episode_steps=6)
gymnasium.register("agentrl/ALFWorld-v0", entry_point="agentrl_envs.alfworld.env:ALFWorld", max_episode_steps=50)
gymnasium.register("agentrl/Prompts-v0", entry_point="agentrl_envs.prompts:Prompts", max_episode_steps=1)
gymnasium.register("agentrl/ZeroTIR-v0", entry_point="agentrl_envs.zerotir.env:ZeroTIR", max_episode_steps=20)
gymnasium.register("agentrl/WebShop-v0", entry_point="agentrl_envs.webshop.env:WebShop", max_episode_steps=15)
