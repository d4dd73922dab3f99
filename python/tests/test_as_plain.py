"""What a program may do in a step because it may do it without one."""
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn.functional import conv2d
from torch.nn.utils import parametrize

import reprise


# ---- settings of the process ----


@contextlib.contextmanager
def setting(put: Callable[[Any], Any], inside: Any, outside: Any) -> Iterator[None]:
    put(inside)
    try:
        yield
    finally:
        put(outside)


SETTINGS: dict[str, Callable[[], Any]] = {
    "oneDNN": lambda: torch.backends.mkldnn.flags(enabled=False),
    "threads": lambda: setting(torch.set_num_threads, 2, 1),
    "denormals": lambda: setting(torch.set_flush_denormal, True, False),
}


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_may_be_others_in_backward_than_in_forward(name: str) -> None:
    def train() -> torch.Tensor:
        torch.manual_seed(0)
        x = torch.randn(4, 16, 24, 24, requires_grad=True)
        w = torch.randn(16, 16, 3, 3, requires_grad=True)
        tiny = torch.full((64,), 1e-39)
        with SETTINGS[name]():
            h = conv2d(x, w, padding=1).tanh()
            y = (h.sum((0, 2, 3)) * h.mean() * h.std()).tanh().sum()
            y = y + ((tiny * 0.5).repeat(4) * x.flatten()[:256]).sum() * 1e30
        y.backward()
        return x.grad

    plain = train()
    before = torch.get_num_threads(), torch.backends.mkldnn.enabled
    session = reprise.Session(evict_everything=True, verify="never")
    for _ in range(2):
        with session.step():
            assert torch.equal(train(), plain)
    assert (torch.get_num_threads(), torch.backends.mkldnn.enabled) == before


# ---- budgets ----


def drops_its_batch(made_in_the_step: bool) -> Callable[[reprise.Session], None]:
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(12)))

    def step(batch: list[torch.Tensor]) -> None:
        large = batch.pop()
        small = large.sum(-1, keepdim=True) * 1e-3
        del large  # plain torch frees it here
        model(model[0][0].weight.sum(0) * small).pow(2).mean().backward()
        model.zero_grad()

    def train(session: reprise.Session) -> None:
        batch = [] if made_in_the_step else [torch.ones(512, 2048)]
        with session.step():
            step(batch or [torch.ones(512, 2048)])

    return train


def has_dropout_and_adam() -> Callable[[reprise.Session], None]:
    layers = (torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout(0.1), torch.nn.GELU()) for _ in range(8))
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters())

    def train(session: reprise.Session) -> None:
        with session.step():
            model(torch.randn(256, 64)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    return train


PROGRAMS: dict[str, Callable[[], Callable[[reprise.Session], None]]] = {
    "drops a batch made before": lambda: drops_its_batch(False),
    "drops a batch made in it": lambda: drops_its_batch(True),
    "dropout and Adam": has_dropout_and_adam,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_peak_of_plain_torch_is_a_budget_that_works(name: str) -> None:
    def peak(budget: int | None) -> int:
        torch.manual_seed(0)
        train = PROGRAMS[name]()
        session = reprise.Session(budget=budget)
        most = 0
        for _ in range(4):
            train(session)
            session.wait_for_plan()
            most = max(most, session.summary()["peak_bytes"])
        return most

    plain = peak(None)
    assert peak(plain) <= plain


# ---- saved tensors ----


class Named(torch.Tensor):
    pass


@pytest.mark.parametrize("options", [{}, {"budget": "1GiB"}])
def test_a_saved_tensor_that_needs_no_gradient_is_the_very_object(options: dict[str, Any]) -> None:
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x, factor)
            return x * factor

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> Any:
            x, factor = ctx.saved_tensors
            seen.append(factor)
            return g * factor, None

    factor = torch.ones(3).as_subclass(Named)
    with reprise.Session(**options).step():
        Product.apply(torch.ones(3, requires_grad=True), factor).sum().backward()
    assert seen[0] is factor


@pytest.mark.parametrize("options", [{}, {"budget": "1GiB"}, {"evict_everything": True}])
def test_what_a_node_has_saved_can_be_looked_at_and_is_the_programs_memory(options: dict[str, Any]) -> None:
    with reprise.Session(**options).step():
        a = torch.ones(2, requires_grad=True)
        b = a.exp()
        saved = b.grad_fn._saved_result
        with torch.no_grad():
            b += 1
        assert torch.equal(saved, b) and saved._version == b._version


def changed_input() -> None:
    b = torch.ones(5, requires_grad=True) + 1
    c = b * b
    with torch.no_grad():
        b.add_(1)
    c.sum().backward()


def changed_output() -> None:
    b = torch.ones(5, requires_grad=True).exp()
    b.add_(1).sum().backward()


def changed_view() -> None:
    b = torch.ones(2, 5, requires_grad=True).exp()[0]
    c = b.sin()
    with torch.no_grad():
        b.mul_(2)
    c.sum().backward()


def changed_leaf() -> None:
    b = torch.ones(5, requires_grad=True)
    c = b * b
    with torch.no_grad():
        b.add_(1)
    c.sum().backward()


def detached_input() -> None:
    a = torch.tensor(1.0, requires_grad=True).clone()
    b = a.sin()
    a.detach_()
    b.backward()


@pytest.mark.parametrize("wrong", [changed_input, changed_output, changed_view, changed_leaf, detached_input])
def test_an_error_about_a_saved_tensor_has_torchs_words(wrong: Callable[[], None]) -> None:
    with pytest.raises(RuntimeError) as plain:
        wrong()
    for options in {}, {"budget": "1GiB"}:
        with pytest.raises(RuntimeError) as there, reprise.Session(**options).step():
            wrong()
        assert str(there.value) == str(plain.value)


def test_an_output_that_is_detached_in_place_is_no_error() -> None:
    with reprise.Session().step():
        x = torch.ones(3, requires_grad=True)
        h = x.tanh()
        y = (h * 2).sum()
        z = x.exp()
        loss = y + z.sum()
        z.detach_()
        loss.backward()
    assert torch.allclose(x.grad, 2 * (1 - x.detach().tanh() ** 2) + x.detach().exp())


class Skew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu(1) - x.triu(1).T


def set_to_its_double(m: torch.nn.Module) -> None:
    with torch.no_grad():
        m.weight.set_(m.weight * 2)


def set_by_parametrization(m: torch.nn.Module) -> None:
    parametrize.register_parametrization(m, "weight", Skew())
    parametrize.remove_parametrizations(m, "weight", leave_parametrized=True)


@pytest.mark.parametrize("change", [set_to_its_double, set_by_parametrization])
@pytest.mark.parametrize("options", [{"budget": "4MiB"}, {"evict_everything": True}])
def test_a_parameter_may_be_set_to_what_was_made_from_it(change: Callable[[torch.nn.Module], None], options: dict[str, Any]) -> None:
    def train(step: Any) -> torch.Tensor:
        torch.manual_seed(0)
        m = torch.nn.Linear(64, 64)
        x = torch.ones(4, 64, requires_grad=True)
        with step:
            h = (x * 2).sin()
            change(m)
            m(m(h).tanh()).pow(2).sum().backward()
        return x.grad

    assert torch.equal(train(contextlib.nullcontext()), train(reprise.Session(**options).step()))


# ---- steps that ask what is in a tensor ----


def test_a_step_that_asks_for_masks_and_lengths_can_be_measured() -> None:
    mask = torch.ones(8, 64, 64, dtype=torch.bool)
    mask[3, 50:] = False
    layer = torch.nn.Linear(64, 64)

    def train() -> None:
        x = layer(torch.randn(8, 64, 64))
        assert not (mask & True).all()  # more than a page
        scale = (1 - mask.float()) * -1.0
        assert scale.min().item() == -1
        assert x[mask[..., 0]].shape == (8 * 64 - 14, 64)
        lengths = mask[..., 0].sum(-1)
        assert lengths.max().item() == 64
        assert not torch.isnan(x).any() and torch.isfinite(x).all()
        assert (x.exp() >= 0).all() and not (x.exp() < 0).any()  # a step that is planned passes its own checks
        assert x.flatten(1)[:, x.flatten().topk(3).indices % 64].shape == (8, 3)
        nothing = torch.nn.functional.ctc_loss(
            x.transpose(0, 1).log_softmax(-1), torch.ones(8, 4, dtype=torch.long), lengths, torch.full((8,), 4)
        )
        (x.pow(2).mean() + 0 * nothing).backward()

    assert reprise.Session().measure(train).peak > 0


def test_a_step_that_asks_for_what_it_computed_cannot() -> None:
    layer = torch.nn.Linear(64, 64)

    def train() -> None:
        x = layer(torch.randn(64, 64, 64)).pow(2).mean()
        if x.item() > 1:
            x.backward()

    with pytest.raises(reprise.SessionError, match="tells the program what is in a tensor"):
        reprise.Session().measure(train)


# ---- TorchScript, vmap ----


def blocks() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.GELU()) for _ in range(8)))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_a_budget_error_in_scripted_code_is_one_outside_of_the_step() -> None:
    scripted = torch.jit.script(blocks())
    session = reprise.Session("3MiB")
    with pytest.raises(reprise.BudgetError) as caught:
        for _ in range(4):  # the first ones run block by block
            with session.step():
                scripted(torch.randn(512, 128)).pow(2).mean().backward()
                scripted.zero_grad()
    assert caught.value.budget == 3 << 20 and "TorchScript interpreter" in str(caught.value.__cause__)
    assert [row["op"] for row in session.summary()["kept"]] == ["TorchScript"]


def test_a_vmapped_model_is_evicted_like_any_other() -> None:
    def train() -> torch.Tensor:
        model = blocks()
        torch.vmap(model)(torch.linspace(0, 1, 64 * 128).view(4, 16, 128)).pow(2).mean().backward()
        return model[0][0].weight.grad

    plain = train()
    session = reprise.Session(evict_everything=True)
    with session.step():
        assert torch.equal(train(), plain)
    assert session.summary()["replays"] > 0


def test_a_transform_of_torch_func_is_exact_and_says_that_it_keeps_all() -> None:
    model = blocks()
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, parameters, (x,)).pow(2).mean()

    gradients = torch.func.grad(loss)
    plain = gradients(parameters, torch.ones(64, 128))
    session = reprise.Session(evict_everything=True)
    with session.step():
        there = gradients(parameters, torch.ones(64, 128))
    assert all(torch.equal(plain[name], there[name]) for name in plain)
    assert session.summary()["replays"] == 0 and session.summary()["kept"]


# ---- operators and functions of the program's own ----


def test_a_random_operator_without_tensors_keeps_its_own_choice_of_a_device() -> None:
    @torch.library.custom_op(
        "reprise_test::noise", mutates_args=(), device_types="cpu", tags=torch.Tag.nondeterministic_seeded
    )
    def noise(n: int, device: torch.device) -> torch.Tensor:
        return torch.randn(n, device=device)

    with reprise.Session().step():
        torch.ones(3, requires_grad=True).sin().sum().backward()
    torch.manual_seed(0)
    expected = torch.randn(3)
    torch.manual_seed(0)
    assert torch.equal(noise(3, torch.device("cpu")), expected)


def test_a_function_may_save_a_tensor_that_is_detached_in_place_afterwards() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return 2 * g + 0 * x

    def train(step: Any) -> None:
        with step:
            h = torch.ones(3, requires_grad=True) * 3
            y = Double.apply(h)
            h.detach_()
            y.sum().backward()

    train(contextlib.nullcontext())
    train(reprise.Session().step())


def test_noise_of_rrelu_counts_no_write() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.RReLU(inplace=True))
    session = reprise.Session()
    for _ in range(3):
        with session.step():
            model(torch.randn(4, 8)).sum().backward()
    model(torch.randn(4, 8)).sum().backward()


def test_an_error_of_the_programs_that_quotes_one_of_ours_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="batch 3") as caught, reprise.Session("1MiB").step():
        try:
            torch.empty(1 << 22)
        except reprise.BudgetError as error:
            raise RuntimeError(f"batch 3: {error}") from error
    assert type(caught.value) is RuntimeError
