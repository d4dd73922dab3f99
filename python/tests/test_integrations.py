"""Reprise in the training loops of other libraries, with these libraries as they are."""
import pytest
import torch

pytestmark = pytest.mark.slow
torch.set_num_threads(1)


def same(a, b):
    return all(torch.equal(one, other) for one, other in zip(a, b, strict=True))


def test_a_trainer_of_transformers_has_the_same_bits(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from reprise.integrations.transformers import BudgetCallback

    rows = torch.randint(0, 100, (16, 32), generator=torch.Generator().manual_seed(0))

    def train(callbacks):
        torch.manual_seed(0)
        config = transformers.GPT2Config(
            vocab_size=100, n_positions=32, n_embd=32, n_layer=3, n_head=4, bos_token_id=0, eos_token_id=0
        )
        model = transformers.GPT2LMHeadModel(config)
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path), per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=3,
            report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no",
        )
        dataset = [{"input_ids": row, "labels": row} for row in rows]
        transformers.Trainer(model=model, args=arguments, train_dataset=dataset, callbacks=callbacks).train()
        return [parameter.detach() for parameter in model.parameters()]

    callback = BudgetCallback(evict_everything=True)
    assert same(train([callback]), train([]))
    summary = callback.session.summary()
    assert summary["steps"] == 3 and summary["replays"] > 0


def test_a_step_of_a_trainer_of_transformers_ends_with_an_error(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from reprise.integrations.transformers import BudgetCallback

    class Fails(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            raise ArithmeticError("in the middle of a step")

    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), max_steps=1, report_to=[], use_cpu=True, disable_tqdm=True)
    callback = BudgetCallback("1GiB")
    trainer = transformers.Trainer(model=Fails(), args=arguments, train_dataset=[{"x": torch.zeros(4)}] * 2, callbacks=[callback])
    with pytest.raises(ArithmeticError, match="in the middle of a step"):
        trainer.train()
    with callback.session.step():  # an error if the other one were still open
        torch.ones(4, requires_grad=True).exp().sum().backward()
    with callback.session.step():  # one that cannot begin is told as it is
        with pytest.raises(ValueError, match="close it first"):
            trainer.train()


def test_a_trainer_of_lightning_has_the_same_bits(tmp_path):
    lightning = pytest.importorskip("lightning")
    from reprise.integrations.lightning import BudgetCallback

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(64, 1))

        def training_step(self, batch, index):
            return self.layers(batch).pow(2).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.randn(12, 16, generator=torch.Generator().manual_seed(0))

    def train(callbacks):
        torch.manual_seed(0)
        model = Model()
        trainer = lightning.Trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=tmp_path, callbacks=callbacks,
        )
        trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=4))
        return [parameter.detach() for parameter in model.parameters()]

    callback = BudgetCallback(evict_everything=True)
    assert same(train([callback]), train([]))
    summary = callback.session.summary()
    assert summary["steps"] == 3 and summary["replays"] > 0
