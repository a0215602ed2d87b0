"""stable-baselines3: four agents learn for a moment."""

from stable_baselines3 import A2C, DQN, PPO, SAC

AGENTS = (
    (PPO, "CartPole-v1", {"n_steps": 32, "batch_size": 16}),
    (DQN, "CartPole-v1", {}),
    (A2C, "CartPole-v1", {}),
    (SAC, "Pendulum-v1", {}),
)
for kind, world, options in AGENTS:
    agent = kind("MlpPolicy", world, seed=0, **options)
    agent.learn(96)
    size = sum(p.abs().sum().item() for p in agent.policy.parameters())
    print(kind.__name__, f"{size:.3f}")
    state = agent.get_env().reset()
    print(agent.predict(state, deterministic=True)[0])
