"""A chain of closures on arrays of numpy, the plain loop that does the same, and every schedule."""
import numpy as np

from reprise import schedule

LAYERS = 24


def step(k, x):
    return x + 0.1 * np.sin((k + 1) * x)


def adjoint(k, x, gradient):
    return gradient * (1 + 0.1 * (k + 1) * np.cos((k + 1) * x))


def start(size=64):
    return np.random.default_rng(0).standard_normal(size)


def plain(x, gradient, layers=range(LAYERS)):
    """The result and the gradient of a loop that keeps everything."""
    states = [x]
    for k in layers:
        states.append(step(k, states[-1]))
    for k, state in zip(reversed(list(layers)), reversed(states[:-1])):
        gradient = adjoint(k, state, gradient)
    return states[-1], gradient


def same(a, b):
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def run(chain, x=None):
    x = start() if x is None else x
    y = chain.forward(x)
    return y, chain.backward(np.ones_like(x))


SCHEDULES = {
    "everything": schedule.everything(),
    "every": schedule.every(5),
    "every, at most": schedule.every(1, maximum=3),
    "slots": schedule.slots(3),
    "one slot": schedule.slots(1),
    "online": schedule.online(4),
    "selective": schedule.selective(4),
    "costly_layers": schedule.costly_layers(1),
    "after": schedule.after([1, 20, 7]),
    "memory_and_disk": schedule.memory_and_disk(2, 3, write_cost=2, read_cost=2),
    "budget": schedule.budget(64 * 8 * 8, seconds=1),
}
