// The kinds of operators that random programs are made of. A new one is a line or two here.
#include <cstdlib>

#include "torch/random/random_program_draw.h"

namespace reprise::testing {
namespace {

namespace F = torch::nn::functional;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

double share(std::int64_t hundredths) {
  return static_cast<double>(hundredths) / 100;
}

// ---- functions with a backward of their own ------------------------------------------------------------------------

struct Cube : torch::autograd::Function<Cube> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const Tensor x = context->get_saved_variables()[0];
    return {gradients[0] * x * x * 3};
  }
};

struct Squash : torch::autograd::Function<Squash> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    const Tensor y = (x * 0.5).sigmoid();
    context->save_for_backward({y});
    return y;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const Tensor y = context->get_saved_variables()[0];
    return {gradients[0] * y * (1 - y) * 0.5};
  }
};

// Saves what is neither input nor output, and numbers from the generator.
struct Noisy : torch::autograd::Function<Noisy> {
  static tensor_list forward(AutogradContext* context, const Tensor& x) {
    const Tensor noise = torch::rand_like(x), scaled = x * noise;
    context->save_for_backward({noise, scaled});
    return {scaled.sin(), scaled.cos()};
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {(gradients[0] * saved[1].cos() - gradients[1] * saved[1].sin()) * saved[0]};
  }
};

// ---- families ------------------------------------------------------------------------------------------------------

using Unary = Tensor (*)(const Tensor&);
using Run = std::function<Tensors(const Tensors&, const Numbers&)>;
using Choose = std::function<bool(Draw&, Operation&)>;

bool choose_real(Draw& draw, Operation& operation) {
  const auto x = draw.pick(is_real);
  if (x) operation.inputs = {*x};
  return x.has_value();
}

// Real, and with at least so many dimensions.
std::optional<int> pick_with(Draw& draw, std::int64_t dimensions) {
  return draw.pick([&](const Tensor& x) { return is_real(x) && x.dim() >= dimensions; });
}

// One input, a dimension of it, and as many numbers more in these bounds.
Choose along(std::int64_t dimensions = 1, std::vector<std::pair<std::int64_t, std::int64_t>> more = {}) {
  return [=](Draw& draw, Operation& operation) {
    const auto x = pick_with(draw, dimensions);
    if (!x) return false;
    operation.inputs = {*x};
    operation.numbers = {draw.dimension(*x)};
    for (const auto& [lowest, highest] : more) operation.numbers.push_back(draw.number(lowest, highest));
    return true;
  };
}

Choose numbered(std::int64_t lowest, std::int64_t highest) {
  return [=](Draw& draw, Operation& operation) {
    operation.numbers = {draw.number(lowest, highest)};
    return choose_real(draw, operation);
  };
}

bool choose_two(Draw& draw, Operation& operation) {
  if (!choose_real(draw, operation)) return false;
  const Tensor& x = draw.tensor(operation.inputs[0]);
  const auto y = draw.pick([&](const Tensor& other) { return is_real(other) && broadcasts(x, other); });
  if (!y) return false;
  operation.inputs.push_back(*y);
  if (draw.chance(50)) std::swap(operation.inputs[0], operation.inputs[1]);
  return true;
}

Choose in_place_on(std::int64_t dimensions = 0) {
  return [=](Draw& draw, Operation& operation) {
    const auto x = draw.target([&](const Tensor& t) { return is_real(t) && t.dim() >= dimensions; });
    if (!x) return false;
    operation.inputs = {*x};
    operation.numbers = {dimensions > 0 ? draw.dimension(*x) : 0, draw.number(10, 120)};
    return true;
  };
}

bool choose_two_in_place(Draw& draw, Operation& operation) {
  if (!in_place_on()(draw, operation)) return false;
  const int x = operation.inputs[0];
  const auto y =
      draw.pick([&](const Tensor& other) { return is_real(other) && broadcasts_into(other, draw.tensor(x)); });
  if (!y || !draw.may_be_written_into(*y, x)) return false;
  operation.inputs.push_back(*y);
  return true;
}

// Adds a mask that fits the first input.
bool add_mask(Draw& draw, Operation& operation, bool into) {
  const Tensor& x = draw.tensor(operation.inputs[0]);
  const auto mask =
      draw.pick([&](const Tensor& t) { return is_mask(t) && (into ? broadcasts_into(t, x) : broadcasts(t, x)); });
  if (mask) operation.inputs.push_back(*mask);
  return mask.has_value();
}

// Adds an index of one dimension for a dimension of the first input, which is the first number.
void add_index(Draw& draw, Operation& operation) {
  const Tensor& x = draw.tensor(operation.inputs[0]);
  const std::int64_t size = x.size(operation.numbers[0]);
  const auto index = draw.pick([&](const Tensor& t) {
    return is_index(t) && t.dim() == 1 && t.numel() > 0 && t.min().item<std::int64_t>() >= 0 &&
           t.max().item<std::int64_t>() < size;
  });
  operation.inputs.push_back(index ? *index
                                   : draw.parameter({draw.number(2, 6)}, at::kLong, false, Leaf::Content::index,
                                                    std::max<std::int64_t>(size, 1)));
}

// Saved for backward: the result, an input, both or nothing, as LibTorch likes.
std::vector<Kind> elementwise() {
  const std::vector<std::pair<const char*, Unary>> functions = {
      {"sigmoid", [](const Tensor& x) { return x.sigmoid(); }},
      {"tanh", [](const Tensor& x) { return x.tanh(); }},
      {"exp", [](const Tensor& x) { return x.exp(); }},
      {"relu", [](const Tensor& x) { return x.relu(); }},
      {"gelu", [](const Tensor& x) { return at::gelu(x); }},
      {"silu", [](const Tensor& x) { return at::silu(x); }},
      {"softplus", [](const Tensor& x) { return at::softplus(x); }},
      {"sin", [](const Tensor& x) { return x.sin(); }},
      {"square", [](const Tensor& x) { return x.square(); }},
      {"abs_sqrt", [](const Tensor& x) { return (x.abs() + 0.1).sqrt(); }},
      {"log_abs", [](const Tensor& x) { return x.abs().log1p(); }},
      {"reciprocal", [](const Tensor& x) { return (x.abs() + 1).reciprocal(); }},
      {"leaky_relu", [](const Tensor& x) { return at::leaky_relu(x, 0.1); }},
      {"elu", [](const Tensor& x) { return at::elu(x); }},
      {"clamp", [](const Tensor& x) { return x.clamp(-1, 1); }},
      {"to_double", [](const Tensor& x) { return x.to(at::kDouble); }},
      {"to_float", [](const Tensor& x) { return x.to(at::kFloat); }},
      {"clone", [](const Tensor& x) { return x.clone(); }},
      {"contiguous", [](const Tensor& x) { return x.contiguous(); }},
      {"function_cube", [](const Tensor& x) { return Cube::apply(x); }},
      {"function_squash", [](const Tensor& x) { return Squash::apply(x); }},
      {"scaled_by_item", [](const Tensor& x) { return x * (x.detach().mean().item<float>() + 0.5F); }},
      {"boolean_index_sum", [](const Tensor& x) { return x.index({x > 0}).sum(); }},
  };
  std::vector<Kind> all;
  for (const auto& [name, function] : functions) {
    all.push_back({.name = name, .choose = choose_real, .run = [function](const Tensors& in, const Numbers&) {
                     return Tensors{function(in[0])};
                   }});
  }
  return all;
}

std::vector<Kind> binary() {
  using Binary = Tensor (*)(const Tensor&, const Tensor&);
  struct Named {
    const char* name;
    int weight;
    bool saves;
    Binary function;
  };
  const std::vector<Named> functions = {
      {"add", 3, false, [](const Tensor& x, const Tensor& y) { return x + y; }},
      {"sub", 2, false, [](const Tensor& x, const Tensor& y) { return x - y; }},
      {"mul", 4, true, [](const Tensor& x, const Tensor& y) { return x * y; }},
      {"div", 2, true, [](const Tensor& x, const Tensor& y) { return x / (y.abs() + 1); }},
      {"maximum", 1, true, [](const Tensor& x, const Tensor& y) { return at::maximum(x, y); }},
      {"atan2", 1, true, [](const Tensor& x, const Tensor& y) { return at::atan2(x, y); }},
      {"lerp", 1, true, [](const Tensor& x, const Tensor& y) { return at::lerp(x, y, 0.3); }},
      {"mul_itself", 1, true, [](const Tensor& x, const Tensor& y) { return x * x * y; }},
  };
  std::vector<Kind> all;
  for (const Named& one : functions) {
    all.push_back({.name = one.name,
                   .weight = one.weight,
                   .saves = one.saves,
                   .choose = choose_two,
                   .run = [function = one.function](const Tensors& in, const Numbers&) {
                     return Tensors{function(in[0], in[1])};
                   }});
  }
  all.push_back({.name = "greater",
                 .weight = 1,
                 .saves = false,
                 .choose = choose_two,
                 .run = [](const Tensors& in, const Numbers&) { return Tensors{in[0] > in[1]}; }});
  all.push_back(
      {.name = "where",
       .weight = 2,
       .choose = [](Draw& draw,
                    Operation& operation) { return choose_two(draw, operation) && add_mask(draw, operation, true); },
       .run = [](const Tensors& in, const Numbers&) { return Tensors{at::where(in[2], in[0], in[1])}; }});
  return all;
}

std::vector<Kind> views() {
  std::vector<Kind> all;
  const auto add = [&](const char* name, Choose choose, Run run) {
    all.push_back({name, 1, false, false, std::move(choose), std::move(run)});
  };
  add("transpose", along(2, {{0, 1}}),
      [](const Tensors& in, const Numbers& n) { return Tensors{in[0].transpose(n[0], n[1])}; });
  add("narrow", along(), [](const Tensors& in, const Numbers& n) {
    const std::int64_t size = in[0].size(n[0]);
    return Tensors{in[0].narrow(n[0], size / 3, (size + 1) / 2)};
  });
  add("slice", along(1, {{0, 1}}),
      [](const Tensors& in, const Numbers& n) { return Tensors{in[0].slice(n[0], n[1], at::nullopt, 2)}; });
  add("select", along(1, {{-1, 0}}),
      [](const Tensors& in, const Numbers& n) { return Tensors{in[0].select(n[0], n[1])}; });
  add("flat_view", choose_real, [](const Tensors& in, const Numbers&) { return Tensors{in[0].view(-1)}; });
  add("reshape", along(2), [](const Tensors& in, const Numbers& n) {
    return Tensors{in[0].reshape({in[0].size(n[0]), -1})};
  });
  add("unsqueeze", along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].unsqueeze(n[0])}; });
  add("squeeze", choose_real, [](const Tensors& in, const Numbers&) { return Tensors{in[0].squeeze()}; });
  add("expand", numbered(2, 4), [](const Tensors& in, const Numbers& n) {
    std::vector<std::int64_t> sizes(in[0].sizes().begin(), in[0].sizes().end());
    sizes.insert(sizes.begin(), n[0]);
    return Tensors{in[0].expand(sizes)};
  });
  add("diagonal", along(2), [](const Tensors& in, const Numbers&) { return Tensors{in[0].diagonal()}; });
  add("unfold", along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].unfold(n[0], 2, 1)}; });
  add("detach", choose_real, [](const Tensors& in, const Numbers&) { return Tensors{in[0].detach()}; });
  add("alias", choose_real, [](const Tensors& in, const Numbers&) { return Tensors{in[0].alias()}; });
  add("split", along(), [](const Tensors& in, const Numbers& n) {
    const std::int64_t size = in[0].size(n[0]);
    return Tensors(in[0].split((size + 1) / 2, n[0]));
  });
  add("chunk", along(), [](const Tensors& in, const Numbers& n) { return Tensors(in[0].chunk(3, n[0])); });
  add("unbind", along(), [](const Tensors& in, const Numbers& n) { return Tensors(in[0].unbind(n[0])); });
  for (Kind& one : all) one.weight = 2;
  return all;
}

std::vector<Kind> in_place() {
  std::vector<Kind> all;
  const auto add = [&](const char* name, int weight, bool saves, Choose choose,
                       std::function<void(Tensors, const Numbers&)> run) {
    all.push_back({name, weight, saves, true, std::move(choose), [run](const Tensors& in, const Numbers& n) {
                     run(in, n);
                     return Tensors();
                   }});
  };
  const Choose one = in_place_on(), two = choose_two_in_place;
  const Choose masked = [](Draw& draw, Operation& operation) {
    return in_place_on()(draw, operation) && add_mask(draw, operation, true);
  };
  const Choose indexed = [](Draw& draw, Operation& operation) {
    if (!in_place_on(1)(draw, operation)) return false;
    add_index(draw, operation);
    return true;
  };
  add("add_number_", 2, false, one, [](Tensors in, const Numbers& n) { in[0].add_(share(n[1])); });
  add("mul_number_", 3, false, one, [](Tensors in, const Numbers& n) { in[0].mul_(share(n[1])); });
  add("tanh_", 2, true, one, [](Tensors in, const Numbers&) { in[0].tanh_(); });
  add("sigmoid_", 2, true, one, [](Tensors in, const Numbers&) { in[0].sigmoid_(); });
  add("relu_", 3, true, one, [](Tensors in, const Numbers&) { in[0].relu_(); });
  add("sin_", 1, true, one, [](Tensors in, const Numbers&) { in[0].sin_(); });
  add("clamp_", 1, true, one, [](Tensors in, const Numbers&) { in[0].clamp_(-0.5, 0.7); });
  add("zero_", 1, false, one, [](Tensors in, const Numbers&) { in[0].zero_(); });
  add("dropout_", 1, true, one, [](Tensors in, const Numbers&) { at::dropout_(in[0], 0.3, true); });
  add("rrelu_", 1, true, one, [](Tensors in, const Numbers&) { at::rrelu_(in[0], 0.1, 0.4, true); });
  add("uniform_", 1, false, one, [](Tensors in, const Numbers&) { in[0].uniform_(-1, 1); });
  add("bernoulli_", 1, false, one, [](Tensors in, const Numbers&) { in[0].bernoulli_(0.6); });
  add("add_", 3, false, two, [](Tensors in, const Numbers&) { in[0].add_(in[1]); });
  add("sub_scaled_", 1, false, two, [](Tensors in, const Numbers& n) { in[0].sub_(in[1], share(n[1])); });
  add("mul_", 2, true, two, [](Tensors in, const Numbers&) { in[0].mul_(in[1]); });
  add("div_", 1, true, two, [](Tensors in, const Numbers&) { in[0].div_(in[1].abs() + 1); });
  add("copy_", 3, false, two, [](Tensors in, const Numbers&) { in[0].copy_(in[1]); });
  add("masked_fill_", 2, true, masked, [](Tensors in, const Numbers& n) { in[0].masked_fill_(in[1], share(n[1])); });
  add("index_put_", 1, true, masked,
      [](Tensors in, const Numbers& n) { in[0].index_put_({in[1]}, torch::full({}, share(n[1]), in[0].options())); });
  add("index_fill_", 1, true, indexed,
      [](Tensors in, const Numbers& n) { in[0].index_fill_(n[0], in[1], share(n[1])); });
  add("index_add_", 1, true, indexed,
      [](Tensors in, const Numbers& n) { in[0].index_add_(n[0], in[1], in[0].detach().index_select(n[0], in[1])); });
  add("transposed_mul_", 1, false, in_place_on(2),
      [](Tensors in, const Numbers& n) { in[0].transpose(0, 1).mul_(share(n[1])); });
  add("part_relu_", 1, true, in_place_on(1),
      [](Tensors in, const Numbers& n) { in[0].narrow(n[0], 0, (in[0].size(n[0]) + 1) / 2).relu_(); });
  add("part_copy_", 1, false, in_place_on(1),
      [](Tensors in, const Numbers& n) { in[0].select(n[0], 0).copy_(in[0].select(n[0], -1).clone()); });
  // Nobody counts writes through data(): LibTorch takes what it finds.
  add(
      "data_mul_", 1, false,
      [](Draw& draw, Operation& operation) {
        operation.numbers = {0, draw.number(50, 110)};
        return choose_real(draw, operation);
      },
      [](Tensors in, const Numbers& n) { in[0].variable_data().mul_(share(n[1])); });
  add("no_grad_mul_", 1, false, one, [](Tensors in, const Numbers& n) {
    at::NoGradGuard no_grad;
    in[0].mul_(share(n[1]));
  });
  return all;
}

std::vector<Kind> layers_and_products() {
  std::vector<Kind> all;
  const auto add = [&](const char* name, int weight, Choose choose, Run run) {
    all.push_back({name, weight, true, false, std::move(choose), std::move(run)});
  };
  add(
      "matmul", 3,
      [](Draw& draw, Operation& operation) {
        const auto x = pick_with(draw, 2);
        if (!x) return false;
        const auto inner = draw.tensor(*x).size(-1);
        const auto dtype = draw.tensor(*x).scalar_type();
        const auto y = draw.pick([&](const Tensor& t) {
          return t.scalar_type() == dtype && t.dim() >= 1 && t.dim() <= 2 && t.size(0) == inner && t.numel() > inner;
        });
        operation.inputs = {*x, y && draw.chance(60) ? *y : draw.parameter({inner, draw.number(2, 12)}, dtype)};
        return true;
      },
      [](const Tensors& in, const Numbers&) { return Tensors{in[0].matmul(in[1])}; });
  add(
      "bmm", 2,
      [](Draw& draw, Operation& operation) {
        const auto x = draw.pick([](const Tensor& t) { return is_real(t) && t.dim() == 3; });
        if (!x) return false;
        operation.inputs = {*x};
        return true;
      },
      [](const Tensors& in, const Numbers&) { return Tensors{at::bmm(in[0], in[0].transpose(1, 2)) * 0.2}; });
  add(
      "linear", 4,
      [](Draw& draw, Operation& operation) {
        const auto x = pick_with(draw, 2);
        if (!x) return false;
        const auto inner = draw.tensor(*x).size(-1), outer = draw.number(3, 12);
        const auto dtype = draw.tensor(*x).scalar_type();
        operation.inputs = {*x, draw.parameter({outer, inner}, dtype), draw.parameter({outer}, dtype)};
        return true;
      },
      [](const Tensors& in, const Numbers&) { return Tensors{at::linear(in[0], in[1], in[2])}; });
  const auto image = [](const Tensor& t) { return is_real(t) && t.dim() == 4 && t.size(2) > 1 && t.size(3) > 1; };
  add(
      "conv2d", 3,
      [image](Draw& draw, Operation& operation) {
        const auto x = draw.pick(image);
        if (!x) return false;
        const auto dtype = draw.tensor(*x).scalar_type();
        const auto channels = draw.tensor(*x).size(1), outer = draw.number(2, 5);
        operation.inputs = {*x, draw.parameter({outer, channels, 3, 3}, dtype), draw.parameter({outer}, dtype)};
        return true;
      },
      [](const Tensors& in, const Numbers&) { return Tensors{at::conv2d(in[0], in[1], in[2], 1, 1)}; });
  const auto pooled = [image](Draw& draw, Operation& operation) {
    const auto x = draw.pick(image);
    if (x) operation.inputs = {*x};
    return x.has_value();
  };
  add("max_pool2d", 1, pooled, [](const Tensors& in, const Numbers&) { return Tensors{at::max_pool2d(in[0], 2)}; });
  add("upsample", 1, pooled, [](const Tensors& in, const Numbers&) {
    return Tensors{at::upsample_nearest2d(in[0], {in[0].size(2) + 1, in[0].size(3) + 2})};
  });
  add(
      "layer_norm", 3,
      [](Draw& draw, Operation& operation) {
        const auto x = pick_with(draw, 1);
        if (!x) return false;
        const auto size = draw.tensor(*x).size(-1);
        const auto dtype = draw.tensor(*x).scalar_type();
        operation.inputs = {*x, draw.parameter({size}, dtype), draw.parameter({size}, dtype)};
        return true;
      },
      [](const Tensors& in, const Numbers&) { return Tensors{at::layer_norm(in[0], {in[0].size(-1)}, in[1], in[2])}; });
  add(
      "batch_norm", 3,
      [](Draw& draw, Operation& operation) {
        const auto x = pick_with(draw, 2);
        if (!x) return false;
        const auto size = draw.tensor(*x).size(1);
        const auto dtype = draw.tensor(*x).scalar_type();
        operation.inputs = {*x, draw.parameter({size}, dtype), draw.parameter({size}, dtype),
                            draw.parameter({size}, dtype, false),
                            draw.parameter({size}, dtype, false, Leaf::Content::positive)};
        return true;
      },
      [](const Tensors& in, const Numbers&) {
        return Tensors{at::batch_norm(in[0], in[1], in[2], in[3], in[4], true, 0.1, 1e-5, false)};
      });
  add(
      "embedding", 2,
      [](Draw& draw, Operation& operation) {
        const auto rows = draw.number(4, 8);
        const auto index = draw.pick([&](const Tensor& t) {
          return is_index(t) && t.dim() <= 2 && t.numel() > 0 && t.min().item<std::int64_t>() >= 0 &&
                 t.max().item<std::int64_t>() < rows;
        });
        operation.inputs = {
            draw.parameter({rows, draw.number(3, 8)}, at::kFloat),
            index ? *index : draw.parameter({draw.number(2, 6)}, at::kLong, false, Leaf::Content::index, rows)};
        return true;
      },
      [](const Tensors& in, const Numbers&) { return Tensors{at::embedding(in[0], in[1])}; });
  add("softmax", 2, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].softmax(n[0])}; });
  add("log_softmax", 2, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].log_softmax(n[0])}; });
  add(
      "attention", 1,
      [](Draw& draw, Operation& operation) {
        const auto x = draw.pick([](const Tensor& t) { return is_real(t) && t.dim() == 3; });
        if (x) operation.inputs = {*x};
        return x.has_value();
      },
      [](const Tensors& in, const Numbers&) {
        const Tensor x = in[0].unsqueeze(1);
        return Tensors{at::scaled_dot_product_attention(x, x, x)};
      });
  return all;
}

std::vector<Kind> random() {
  std::vector<Kind> all;
  const auto add = [&](const char* name, bool saves, Choose choose, Run run) {
    all.push_back({name, 2, saves, false, std::move(choose), std::move(run)});
  };
  add("dropout", true, numbered(10, 60),
      [](const Tensors& in, const Numbers& n) { return Tensors{at::dropout(in[0], share(n[0]), true)}; });
  add("rrelu", true, choose_real,
      [](const Tensors& in, const Numbers&) { return Tensors{at::rrelu(in[0], 0.1, 0.5, true)}; });
  add("bernoulli", true, choose_real,
      [](const Tensors& in, const Numbers&) { return Tensors{in[0] * at::bernoulli(in[0].detach().sigmoid())}; });
  add("rand_like", false, choose_real, [](const Tensors& in, const Numbers&) { return Tensors{at::rand_like(in[0])}; });
  add("noise", false, choose_real,
      [](const Tensors& in, const Numbers&) { return Tensors{in[0] + at::randn_like(in[0])}; });
  add("random_mask", false, choose_real,
      [](const Tensors& in, const Numbers&) { return Tensors{at::rand_like(in[0]) > 0.4}; });
  add("shuffled", true, along(1), [](const Tensors& in, const Numbers& n) {
    return Tensors{in[0].index_select(n[0], at::randperm(in[0].size(n[0]), in[0].options().dtype(at::kLong)))};
  });
  add("function_noisy", true, choose_real,
      [](const Tensors& in, const Numbers&) { return Tensors(Noisy::apply(in[0])); });
  return all;
}

std::vector<Kind> reductions_and_indices() {
  std::vector<Kind> all;
  const auto add = [&](const char* name, bool saves, Choose choose, Run run) {
    all.push_back({name, 1, saves, false, std::move(choose), std::move(run)});
  };
  const Choose indexed = [](Draw& draw, Operation& operation) {
    if (!along()(draw, operation)) return false;
    add_index(draw, operation);
    return true;
  };
  const Choose alike = [](Draw& draw, Operation& operation) {
    if (!along()(draw, operation)) return false;
    const Tensor& x = draw.tensor(operation.inputs[0]);
    for (int i = 0; i < 2; ++i) {
      const auto y =
          draw.pick([&](const Tensor& t) { return t.sizes() == x.sizes() && t.scalar_type() == x.scalar_type(); });
      if (y) operation.inputs.push_back(*y);
    }
    return true;
  };
  add("sum", false, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].sum(n[0])}; });
  add("mean_kept", false, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].mean(n[0], true)}; });
  add("amax", true, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].amax(n[0])}; });
  add("norm", true, along(), [](const Tensors& in, const Numbers& n) { return Tensors{(in[0] + 0.1).norm(2, n[0])}; });
  add("logsumexp", true, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].logsumexp(n[0])}; });
  add("cumsum", false, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].cumsum(n[0]) * 0.5}; });
  add("cumprod", true, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].cumprod(n[0])}; });
  add("max_dim", true, along(), [](const Tensors& in, const Numbers& n) {
    auto [values, indices] = in[0].max(n[0]);
    return Tensors{values, indices};
  });
  add("topk", true, along(), [](const Tensors& in, const Numbers& n) {
    auto [values, indices] = in[0].topk((in[0].size(n[0]) + 1) / 2, n[0]);
    return Tensors{values, indices};
  });
  add("sort", true, along(), [](const Tensors& in, const Numbers& n) {
    auto [values, indices] = in[0].sort(n[0]);
    return Tensors{values, indices};
  });
  add("var_mean", true, along(), [](const Tensors& in, const Numbers& n) {
    auto [variance, mean] = at::var_mean(in[0], at::IntArrayRef{n[0]}, false);
    return Tensors{variance, mean};
  });
  add("argmax", false, along(), [](const Tensors& in, const Numbers& n) { return Tensors{in[0].argmax(n[0])}; });
  add("cat", false, alike, [](const Tensors& in, const Numbers& n) { return Tensors{at::cat(in, n[0])}; });
  add("stack", false, alike, [](const Tensors& in, const Numbers& n) { return Tensors{at::stack(in, n[0])}; });
  add("index_select", true, indexed,
      [](const Tensors& in, const Numbers& n) { return Tensors{in[0].index_select(n[0], in[1])}; });
  add("gather_sorted", true, along(), [](const Tensors& in, const Numbers& n) {
    return Tensors{in[0].gather(n[0], in[0].detach().argsort(n[0], true))};
  });
  add("scatter_add", true, along(), [](const Tensors& in, const Numbers& n) {
    return Tensors{at::zeros_like(in[0]).scatter_add(n[0], in[0].detach().argsort(n[0]), in[0])};
  });
  add("indexed_twice", true, indexed,
      [](const Tensors& in, const Numbers& n) { return Tensors{in[0].transpose(0, n[0]).index({in[1]})}; });
  add(
      "masked_fill", true,
      [](Draw& draw, Operation& operation) { return choose_real(draw, operation) && add_mask(draw, operation, false); },
      [](const Tensors& in, const Numbers&) { return Tensors{in[0].masked_fill(in[1], 0.3)}; });
  add("tril", true, along(2), [](const Tensors& in, const Numbers&) { return Tensors{in[0].tril()}; });
  return all;
}

// ---- backward in the middle of a program ---------------------------------------------------------------------------

Tensor loss_of(const Tensor& x, std::int64_t form) {
  switch (form) {
    case 0: return x.sum();
    case 1: return x.mean();
    case 2: return x.square().mean();
    default: return (x * x.detach()).sum() * 0.5;
  }
}

bool choose_with_gradient(Draw& draw, Operation& operation) {
  const auto x = draw.pick([](const Tensor& t) { return t.requires_grad() && t.numel() > 0; });
  if (x) operation.inputs = {*x};
  return x.has_value();
}

Tensors run_backward(const Tensors& in, const Numbers& n) {
  Tensor loss;
  for (const Tensor& x : in)
    loss = loss.defined() ? loss + loss_of(x, n[0]).to(at::kFloat) : loss_of(x, n[0]).to(at::kFloat);
  loss.backward({}, n[1] != 0);
  return {};
}

std::vector<Kind> backwards() {
  const Choose with_leaves = [](Draw& draw, Operation& operation) {
    if (!choose_with_gradient(draw, operation)) return false;
    for (int i = 0; i < 2; ++i) {
      const auto leaf = draw.pick([](const Tensor& t) { return t.requires_grad() && t.is_leaf(); });
      if (leaf && *leaf != operation.inputs.back()) operation.inputs.push_back(*leaf);
    }
    operation.numbers = {draw.number(0, 3), draw.chance(60)};
    return operation.inputs.size() > 1;
  };
  const auto gradients = [](const Tensors& in, const Numbers& n) {
    const Tensors of(in.begin() + 1, in.end());
    Tensors all = torch::autograd::grad({loss_of(in[0], n[0])}, of, {}, true, n[1] != 0, true);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].defined()) all[i] = at::zeros_like(of[i]);
    }
    return all;
  };
  return {
      {"backward", 1, true, false,
       [](Draw& draw, Operation& operation) {
         operation.numbers = {draw.number(0, 3), 1};
         return draw.chance(40) && choose_with_gradient(draw, operation);
       },
       run_backward},
      {"gradients", 1, true, false,
       [with_leaves](Draw& draw, Operation& operation) { return draw.chance(40) && with_leaves(draw, operation); },
       gradients},
      {"hook", 1, false, false, choose_with_gradient,
       [](const Tensors& in, const Numbers&) {
         const Tensor x = in[0].alias();  // a tensor of its own: leaves outlive the program
         if (!x.is_leaf()) x.register_hook([](const Tensor& gradient) { return gradient * 0.5; });
         return Tensors{x};
       }},
  };
}

}  // namespace

const Kind& backward_kind() {
  static const Kind kind = {"backward", 0, true, false, nullptr, run_backward};
  return kind;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> some;
    for (auto* const family :
         {elementwise, binary, views, in_place, layers_and_products, random, reductions_and_indices, backwards}) {
      for (Kind& kind : family()) some.push_back(std::move(kind));
    }
    return some;
  }();
  return all;
}

}  // namespace reprise::testing
