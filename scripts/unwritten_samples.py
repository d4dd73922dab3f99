"""Calls that PyTorch's operator database covers badly: modes in which a part of a result is said to be undefined.

Each sample gives the results and the tensors that need gradients; unwritten.py runs them, forward and backward.
"""

import torch
import torch.nn.functional as F

aten = torch.ops.aten
SAMPLES = {}


def sample(function):
    SAMPLES[function.__name__] = function
    return function


def leaf(*sizes):
    return torch.randn(*sizes).requires_grad_()


@sample
def ctc_with_lengths_that_differ():
    logits = leaf(12, 4, 6)
    targets = torch.randint(1, 6, (4, 5))
    lengths = torch.tensor([12, 9, 7, 3]), torch.tensor([5, 3, 0, 1])
    lists = F.ctc_loss(logits.log_softmax(2), targets, lengths[0].tolist(), lengths[1].tolist(), zero_infinity=True)
    tensors = F.ctc_loss(logits.log_softmax(2), targets, *lengths, reduction="none")
    return [lists, tensors], [logits]


@sample
def rrelu_in_evaluation():
    x = leaf(5, 7)
    return [F.rrelu(x, training=False), F.rrelu(x, training=True), F.rrelu_(x * 1, training=False),
            aten.rrelu_with_noise_functional(x, torch.ones(5, 7), 0.1, 0.3, False)[0]], [x]


@sample
def least_squares():
    results, inputs = [], []
    for rows, columns in ((7, 4), (4, 7), (5, 5)):
        for deficient in (False, True):
            a, b = torch.randn(2, rows, columns), leaf(2, rows, 3)
            if deficient:
                a[..., 1] = a[..., 0]
            a.requires_grad_()
            inputs += [a, b]
            for driver in ("gels", "gelsy", "gelsd", "gelss"):
                if not (deficient and driver == "gels"):
                    results.append(torch.linalg.lstsq(a, b, driver=driver).solution)
    with torch.no_grad():
        torch.linalg.lstsq(torch.zeros(4, 3), torch.zeros(4, 2), driver="gelsd")
    return results[:1], inputs[:2]


@sample
def recurrent_layers():
    results, inputs = [], []
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        for layers, both in ((1, False), (2, True)):
            module, x = kind(5, 6, layers, bidirectional=both), leaf(7, 3, 5)
            packed = torch.nn.utils.rnn.pack_padded_sequence(leaf(7, 3, 5), torch.tensor([7, 4, 2]))
            results += [module(x)[0], torch.nn.utils.rnn.pad_packed_sequence(module(packed)[0])[0]]
            inputs += [x, *module.parameters()]
    return results, inputs


@sample
def bags_of_embeddings():
    results, weights = [], []
    for mode in ("sum", "mean", "max"):
        for padding in (None, 1):
            for last in (False, True):
                weight = leaf(9, 4)
                weights.append(weight)
                results.append(F.embedding_bag(torch.randint(0, 9, (11,)), weight, torch.tensor([0, 3, 3, 9, 11]),
                                               mode=mode, padding_idx=padding, include_last_offset=last))
                results.append(F.embedding_bag(torch.randint(0, 9, (3, 4)), weight, mode=mode, padding_idx=padding))
                results.append(F.embedding_bag(torch.empty(0, dtype=torch.long), weight, torch.tensor([0, 0]),
                                               mode=mode, padding_idx=padding))
        with torch.no_grad():
            F.embedding_bag(torch.randint(0, 9, (11,)), torch.randn(9, 32), torch.tensor([0, 3, 3, 9]), mode=mode)
    weighted, factors = leaf(9, 4), leaf(11)
    results.append(F.embedding_bag(torch.randint(0, 9, (11,)), weighted, torch.tensor([0, 3, 3, 9]), mode="sum",
                                   per_sample_weights=factors))
    return results, [*weights, weighted, factors]


@sample
def attention():
    results, inputs = [], []
    for queries, keys in ((7, 7), (40, 70), (1, 5)):
        for causal in (False, True):
            q, k, v = leaf(2, 3, queries, 8), leaf(2, 3, keys, 8), leaf(2, 3, keys, 8)
            results.append(F.scaled_dot_product_attention(q, k, v, is_causal=causal))
            inputs += [q, k, v]
    q, mask = leaf(2, 3, 7, 8), torch.zeros(7, 7)
    mask[2] = float("-inf")  # a row without anything to attend to
    results += [F.scaled_dot_product_attention(q, q, q, attn_mask=mask),
                aten._scaled_dot_product_attention_math(q, q, q, None, 0.3)[0]]
    attend = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad():
        attend(*[torch.randn(2, 5, 8)] * 3)
    return results, [*inputs, q]


@sample
def normalisation():
    results, inputs = [], []
    for training in (True, False):
        for x in (leaf(4, 6, 5, 5), leaf(4, 6), leaf(4, 6, 5, 5).detach().contiguous(
                memory_format=torch.channels_last).requires_grad_()):
            weight, bias = leaf(6), leaf(6)
            results.append(F.batch_norm(x, torch.zeros(6), torch.ones(6), weight, bias, training))
            inputs += [x, weight, bias]
            if training:
                results.append(F.batch_norm(x, None, None, weight, bias, True))
            for function in (aten._batch_norm_with_update_functional, aten._batch_norm_no_update):
                function(x.detach(), weight.detach(), bias.detach(), torch.zeros(6), torch.ones(6), 0.1, 1e-5)
            aten.native_batch_norm(x.detach(), None, None, torch.zeros(6), torch.ones(6), training, 0.1, 1e-5)
            for wanted in ((True, False, False), (False, True, True)):
                save = torch.zeros(6), torch.ones(6)
                aten.native_batch_norm_backward(x.detach(), x.detach(), weight.detach(), torch.zeros(6), torch.ones(6),
                                                *save, training, 1e-5, list(wanted))
    x, weight, bias = leaf(4, 6, 5, 5), leaf(6), leaf(6)
    results += [F.group_norm(x, 3, weight, bias), F.instance_norm(x), F.layer_norm(x, (5, 5)),
                F.rms_norm(x, (5, 5)), F.local_response_norm(x, 2)]
    for rows in (0, 3):
        aten.native_layer_norm(torch.randn(rows, 5), [5], None, None, 1e-5)
        aten.native_group_norm(torch.randn(rows, 6, 4), None, None, rows, 6, 4, 3, 1e-5)
    aten.native_layer_norm(torch.randn(3, 5).bfloat16(), [5], None, None, 1e-5)
    aten.batch_norm_update_stats(torch.randn(4, 6, 5), torch.zeros(6), torch.ones(6), 0.1)
    aten.batch_norm_update_stats(torch.randn(4, 6, 5), None, None, 0.1)
    return results, [*inputs, x, weight, bias]


@sample
def pooling():
    results, inputs = [], []
    by_channel = torch.randn(2, 4, 9, 9).contiguous(memory_format=torch.channels_last).requires_grad_()
    for x in (leaf(2, 3, 9, 9), by_channel):
        inputs.append(x)
        results += [F.max_pool2d(x, 3, ceil_mode=True), F.adaptive_max_pool2d(x, (2, 5)), F.avg_pool2d(x, 2),
                    F.fractional_max_pool2d(x, 2, output_size=(4, 3)), F.lp_pool2d(x, 2, 3)]
        pooled, indices = F.max_pool2d(x, 2, return_indices=True)
        results.append(F.max_unpool2d(pooled, indices, 2, output_size=(9, 9)))
    y = leaf(2, 3, 9, 9, 9)
    results += [F.max_pool3d(y, 2), F.adaptive_max_pool3d(y, 3), F.fractional_max_pool3d(y, 2, output_size=(4, 4, 4))]
    return results, [*inputs, y]


@sample
def losses():
    x, labels = leaf(6, 5), torch.randint(0, 5, (6,))
    labels[2] = 1
    results = []
    for reduction in ("none", "mean", "sum"):
        results += [F.nll_loss(x.log_softmax(1), labels, ignore_index=1, reduction=reduction),
                    F.multi_margin_loss(x, labels, reduction=reduction),
                    F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 1, 1]] * 6), reduction=reduction),
                    F.cross_entropy(x, torch.full((6,), -100), reduction=reduction)]
        image, classes = leaf(2, 5, 3, 3), torch.randint(0, 5, (2, 3, 3))
        classes[0, 1] = -100
        results.append(F.nll_loss(image.log_softmax(1), classes, reduction=reduction))
    return results, [x]


@sample
def dropout_and_masks():
    x = leaf(5, 7)
    results = [aten.native_dropout(x, 0.5, True)[0], aten.native_dropout(x, 0.5, False)[0],
               aten.native_dropout(x, 1.0, True)[0], F.dropout(x, 0.0), F.alpha_dropout(x, 0.3, True)]
    return results, [x]


@sample
def decompositions():
    a, square = leaf(2, 6, 4), leaf(2, 5, 5)
    positive = (square @ square.mT + 5 * torch.eye(5))
    results = [*torch.linalg.qr(a), *torch.linalg.qr(a, mode="r")[1:], *torch.linalg.svd(a, full_matrices=False),
               *torch.linalg.eigh(positive), torch.linalg.cholesky(positive), torch.linalg.inv(square),
               torch.linalg.solve(square, leaf(2, 5, 3)), torch.linalg.det(square), torch.linalg.slogdet(square)[1]]
    with torch.no_grad():
        torch.linalg.svd(a, full_matrices=True), torch.linalg.svdvals(a), torch.linalg.qr(a, mode="complete")
        torch.linalg.eigvalsh(positive), torch.linalg.eig(square), torch.linalg.eigvals(square)
        torch.geqrf(a), torch.linalg.lu(a), torch.linalg.lu_factor_ex(a), torch.linalg.ldl_factor_ex(positive)
        torch.linalg.cholesky_ex(-positive), torch.linalg.inv_ex(torch.zeros(2, 3, 3))
        torch.linalg.solve_ex(torch.zeros(2, 3, 3), torch.ones(2, 3, 1))
        torch.lu_unpack(*torch.linalg.lu_factor(a), unpack_data=False)
        torch.lu_unpack(*torch.linalg.lu_factor(a), unpack_pivots=False)
        torch.triangular_solve(torch.randn(5, 2), torch.randn(5, 5).triu())
        torch.linalg.qr(torch.randn(0, 3)), torch.linalg.svd(torch.randn(0, 3))
    return results, [a, square]


@sample
def selection():
    x = leaf(5, 7)
    results = [x.max(1)[0], x.sort(1)[0], x.topk(3)[0], x.kthvalue(2)[0], x.mode(1)[0], x.nanmedian(1)[0],
               x.cummax(1)[0], x.cummin(1)[0], x.aminmax(dim=1)[0]]
    with torch.no_grad():
        for inverse, counts in ((False, False), (True, False), (False, True), (True, True)):
            torch.unique(torch.randint(0, 4, (9,)), return_inverse=inverse, return_counts=counts)
            torch.unique_consecutive(torch.randint(0, 3, (9,)), return_inverse=inverse, return_counts=counts)
            torch.unique(torch.randint(0, 2, (9, 2)), dim=0, return_inverse=inverse, return_counts=counts)
        aten._unique(torch.randint(0, 4, (9,)), True, False)
        x.histc(4), torch.histogram(x.reshape(-1), 4), torch.bincount(torch.randint(0, 4, (9,)))
        torch.combinations(x[0]), torch.tril_indices(3, 4), torch.nonzero_static(x > 0, size=40)
        torch.segment_reduce(x.reshape(-1), "max", lengths=torch.tensor([5, 0, 30]), unsafe=True)
    return results, [x]


@sample
def convolutions():
    x, weight, bias = leaf(2, 4, 9, 9), leaf(6, 4, 3, 3), leaf(6)
    results = [F.conv2d(x, weight, bias), F.conv2d(x, weight, None, 2, 1), F.conv_transpose2d(x, leaf(4, 6, 3, 3)),
               F.conv2d(x, leaf(4, 1, 3, 3), groups=4), F.conv2d(x, weight, dilation=2),
               F.conv1d(leaf(2, 4, 9), leaf(6, 4, 3)), F.conv3d(leaf(1, 2, 5, 5, 5), leaf(3, 2, 3, 3, 3)),
               F.conv_tbc(leaf(7, 2, 4), leaf(3, 4, 5), leaf(5)),
               aten._slow_conv2d_forward(x, weight, [3, 3], bias, [1, 1], [0, 0]),
               aten.slow_conv3d_forward(leaf(1, 2, 5, 5, 5), leaf(3, 2, 3, 3, 3), [3, 3, 3], None, [1] * 3, [0] * 3),
               aten.slow_conv_transpose2d(x, leaf(4, 6, 3, 3), [3, 3]),
               aten.slow_conv_dilated2d(x, weight, [3, 3], None, [1, 1], [0, 0], [2, 2])]
    for wanted in ((True, False, False), (False, True, False), (False, False, True)):
        y = F.conv2d(x, weight, bias).detach()
        aten.convolution_backward(y, x.detach(), weight.detach(), [6], [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
                                  list(wanted))
    return results, [x, weight, bias]


@sample
def weight_norm():
    results, inputs = [], []
    for dim, sizes in ((0, (4, 1, 1)), (2, (1, 1, 5))):
        v, g = leaf(4, 3, 5), leaf(*sizes)
        results.append(torch._weight_norm(v, g, dim))
        inputs += [v, g]
    return results, inputs


@sample
def what_only_other_operators_call():
    aten._compute_linear_combination(torch.randn(3, 4, 4), torch.randn(2, 3))
    x = torch.randn(3, 4).to_sparse_csr()
    aten._convert_indices_from_csr_to_coo(x.crow_indices(), x.col_indices())
    aten._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2, 3]), 5)
    aten._nested_compute_contiguous_strides_offsets(torch.tensor([[2, 3], [4, 3]]))
    return [], []


@sample
def optimizers():
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
        for options in ({"fused": True}, {"foreach": True}, {"foreach": False}):
            for rate in (0.1, torch.tensor(0.1)) if "fused" in options else (0.1,):
                weights = [torch.nn.Parameter(torch.randn(4, 3)), torch.nn.Parameter(torch.randn(5))]
                for weight in weights:
                    weight.grad = torch.randn_like(weight)
                optimizer = kind(weights, lr=rate, **options)
                for _ in range(2):
                    optimizer.step()
                torch.nn.utils.clip_grad_norm_(weights, 0.5)
    return [], []


@sample
def quantisation():
    x, scale, zero = leaf(4, 6), torch.tensor([0.1]), torch.tensor([0], dtype=torch.int32)
    scales, zeros = torch.full((6,), 0.1), torch.zeros(6, dtype=torch.int32)
    results = [torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -8, 7),
               torch.fake_quantize_per_tensor_affine(x, scale, zero, -8, 7),
               torch.fake_quantize_per_channel_affine(x, scales, zeros, 1, -8, 7),
               aten._fake_quantize_learnable_per_tensor_affine(x, scale, torch.tensor([0.0]), -8, 7)]
    return results, [x]


@sample
def shifts_and_distributions():
    x = leaf(5, 4)
    concentration = (torch.rand(5, 4) + 0.5).requires_grad_()
    results = [torch.distributions.Dirichlet(concentration).rsample(), torch.distributions.Gamma(
        concentration, concentration).rsample(), torch.cdist(x, x), torch.pdist(x), F.gumbel_softmax(x),
        torch.distributions.Normal(x, concentration).rsample()]
    torch.poisson(concentration.detach()), torch.binomial(torch.full((5, 4), 9.0), torch.rand(5, 4))
    torch.multinomial(torch.rand(5, 4), 3), torch.multinomial(torch.rand(5, 4), 9, replacement=True), torch.randperm(9)
    return results, [x, concentration]
