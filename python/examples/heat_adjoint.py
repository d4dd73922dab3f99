"""The adjoint of a heat equation, with states on disk: which initial temperature leads to the one that is observed?

    python heat_adjoint.py [--steps 400] [--cells 128]

u_t = d(k(u) u_x)/dx on a rod with a conductivity that depends on the temperature, so that backward of a step needs the
state before it. The misfit at the end is differentiated with respect to the initial state. Revolve chooses the steps that
are remembered, and they are on disk: one state is in memory. The gradient is compared with the one of all states
remembered, bit for bit, and with finite differences.
"""
import argparse
import tempfile

import numpy as np

import reprise


def step(k: int, u: np.ndarray) -> np.ndarray:
    """One explicit step of time."""
    middle = 0.5 * (u[1:] + u[:-1])
    flow = (1 + 0.5 * middle**2) * np.diff(u)
    after = u.copy()
    after[:-1] += 0.2 * flow
    after[1:] -= 0.2 * flow
    return after


def step_backward(k: int, u: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient with respect to the state before the step, which is u, of the one with respect to the state after it."""
    middle, slope = 0.5 * (u[1:] + u[:-1]), np.diff(u)
    of_flow = 0.2 * (gradient[:-1] - gradient[1:])
    by_middle = 0.5 * middle * slope * of_flow
    by_slope = (1 + 0.5 * middle**2) * of_flow
    before = gradient.copy()
    before[1:] += by_middle + by_slope
    before[:-1] += by_middle - by_slope
    return before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--cells", type=int, default=128)
    options = parser.parse_args()
    x = np.linspace(0, 1, options.cells)
    start, observed = np.exp(-50 * (x - 0.3) ** 2), np.exp(-20 * (x - 0.4) ** 2)

    def misfit(u: np.ndarray) -> float:
        return 0.5 * float(np.sum((u - observed) ** 2))

    plain = reprise.Chain(options.steps, step, step_backward, schedule=reprise.schedule.everything())
    expected = plain.backward(plain.forward(start) - observed)

    with tempfile.TemporaryDirectory() as folder:
        chain = reprise.Chain(options.steps, step, step_backward)
        chain.use_disk(folder)
        chain.schedule = reprise.schedule.memory_and_disk(0, 10, write_cost=0.1, read_cost=0.1)
        gradient = chain.backward(chain.forward(start) - observed)
        numbers = chain.statistics()

    direction = np.sin(9 * x)
    size = 1e-6
    forward_only = reprise.Chain(options.steps, step, schedule=reprise.schedule.slots(1))
    by_differences = (
        misfit(forward_only.forward(start + size * direction)) - misfit(forward_only.forward(start - size * direction))
    ) / (2 * size)
    slope = float(gradient @ direction)
    same = gradient.tobytes() == expected.tobytes()
    print(f"everything in memory: {plain.statistics()['peak_stored']:8} bytes, {plain.statistics()['forward_calls']} steps")
    print(f"ten states on disk:   {numbers['peak_stored']:8} bytes, {numbers['forward_calls']} steps, {numbers['peak_disk']} bytes on disk")
    print(f"slope {slope:.9f}, by finite differences {by_differences:.9f}")
    print("the gradient is the same, bit for bit" if same else "THE GRADIENTS DIFFER")
    if not same or abs(slope - by_differences) > 1e-6 * abs(slope):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
