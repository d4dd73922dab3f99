#include "example_trace.h"

#include <fmt/format.h>

#include <utility>

namespace reprise::tools {
namespace {

constexpr Bytes layers = 24, batch = 8, length = 512, width = 1024, heads = 16, vocabulary = 16384;
constexpr Bytes float_bytes = 4;
constexpr Bytes tokens = batch * length;
constexpr Bytes activation = tokens * width * float_bytes;
constexpr Bytes scores = batch * heads * length * length * float_bytes;
constexpr Bytes layer_weights = 12 * width * width * float_bytes;
constexpr Bytes embedding_weights = vocabulary * width * float_bytes;
constexpr Bytes all_weights = layers * layer_weights + embedding_weights;
constexpr Bytes optimizer_state = 2 * all_weights;

// Milliseconds.
constexpr double multiply(Bytes rows, Bytes inner, Bytes columns) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns) /
         1e9;  // 1 TFLOP/s
}
constexpr double move(Bytes bytes) {
  return static_cast<double>(bytes) / 4e7;
}  // 40 GB/s

class Builder {
 public:
  Trace build() {
    trace_.name = "example: 24-layer GPT, 8 x 512 tokens";
    trace_.tiers.push_back({"packed bits", std::nullopt, true, {}});
    const Id vocabulary_weights = outside(embedding_weights);
    const Id text = outside(tokens * 8);

    Id x = forward("embedding", {text, vocabulary_weights}, {activation}, move(2 * activation));
    backward("embedding", {text}, move(2 * activation), embedding_weights, activation);
    for (Bytes layer = 0; layer < layers; ++layer) x = add_layer(fmt::format("layer {}: ", layer), x);
    const Id h = add_norm("final norm", x);
    const Id logits = forward("head", {h, vocabulary_weights}, {tokens * vocabulary * float_bytes},
                              multiply(tokens, width, vocabulary));
    backward("head", {h, vocabulary_weights}, 2 * multiply(tokens, width, vocabulary), 0,
             tokens * vocabulary * float_bytes);
    forward("loss", {logits, text}, {float_bytes}, move(tokens * vocabulary * float_bytes));
    backward("loss", {logits, text}, move(2 * tokens * vocabulary * float_bytes), 0, tokens * vocabulary * float_bytes);

    add_events();
    return std::move(trace_);
  }

 private:
  Id add_layer(const std::string& name, Id x) {
    const Id weights = outside(layer_weights);
    const Id after_attention = add_in_place(name + "attention sum", x, add_attention(name, x, weights));
    return add_in_place(name + "sum", after_attention, add_perceptron(name, after_attention, weights));
  }

  Id add_attention(const std::string& name, Id x, Id weights) {
    const Id h = add_norm(name + "attention norm", x);
    const Id qkv = add_linear(name + "qkv", h, weights, width, 3 * width);
    const double product = multiply(batch * heads * length, width / heads, length);
    const Id softmax = forward(name + "softmax", {qkv}, {scores}, product + move(3 * scores), scores);
    backward(name + "softmax", {qkv, softmax}, 2 * product + move(4 * scores), 0, scores);
    const Id mask = add_mask(name + "dropout mask");
    const Id context = forward(name + "attention", {softmax, mask, qkv}, {activation}, product + move(scores));
    backward(name + "attention", {softmax, mask, qkv}, 2 * product + move(scores), 0, scores);
    return add_linear(name + "projection", context, weights, width, width);
  }

  Id add_perceptron(const std::string& name, Id x, Id weights) {
    const Id h = add_norm(name + "norm", x);
    const Id up = add_linear(name + "up", h, weights, width, 4 * width);
    const Id gelu = forward(name + "gelu", {up}, {4 * activation}, move(8 * activation));
    backward(name + "gelu", {up}, move(12 * activation), 0, 4 * activation);
    return add_linear(name + "down", gelu, weights, 4 * width, width);
  }

  Id add_linear(const std::string& name, Id x, Id weights, Bytes inner, Bytes columns) {
    const Id y = forward(name, {x, weights}, {tokens * columns * float_bytes}, multiply(tokens, inner, columns));
    backward(name, {x, weights}, 2 * multiply(tokens, inner, columns), inner * columns * float_bytes,
             tokens * columns * float_bytes);
    return y;
  }

  Id add_norm(const std::string& name, Id x) {
    const Id y = forward(name, {x}, {activation, 2 * tokens * float_bytes}, move(3 * activation));
    backward(name, {x, y + 1}, move(4 * activation), 0, activation);
    return y;
  }

  // Random numbers, one byte each; as bits they take an eighth. Making them takes longer than packing them.
  Id add_mask(const std::string& name) {
    constexpr Bytes bytes = scores / float_bytes;
    const Id mask = forward(name, {}, {bytes}, move(10 * bytes));
    trace_.tiers[0].entries.push_back({mask, bytes / 8, move(bytes), move(bytes)});
    return mask;
  }

  // Its backward passes the gradient on and needs nothing.
  Id add_in_place(const std::string& name, Id x, Id y) {
    const Id sum = forward(name, {x, y}, {activation}, move(3 * activation));
    trace_.values[sum].takes_over = y;
    return sum;
  }

  Id outside(Bytes bytes) {
    trace_.values.push_back(
        {bytes, std::nullopt, Stretch{0, 0}, std::nullopt});  // held to the end, which is not known yet
    return trace_.value_count() - 1;
  }

  // Gives the first output.
  Id forward(std::string name, std::vector<Id> inputs, const std::vector<Bytes>& outputs, double cost,
             Bytes workspace = 0) {
    const Id index = static_cast<Id>(trace_.operators.size());
    Operator op{std::move(name), std::move(inputs), {}, cost, workspace, true};
    for (const Bytes bytes : outputs) {
      op.outputs.push_back(trace_.value_count());
      trace_.values.push_back({bytes, index, std::nullopt, std::nullopt});
    }
    const Id first = op.outputs.front();
    trace_.operators.push_back(std::move(op));
    trace_.moments.push_back({index, optimizer_state, {}, {}, 0});
    return first;
  }

  // To be added when forward is complete, in reverse. `in_flight`: gradients of activations.
  void backward(const std::string& name, std::vector<Id> needs, double cost, Bytes weight_gradients, Bytes in_flight) {
    Moment event;
    event.name = name + " backward";
    event.needs = std::move(needs);
    event.cost = cost;
    event.other = in_flight;
    events_.emplace_back(std::move(event), weight_gradients);
  }

  void add_events() {
    Bytes gradients = 0;
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      gradients += event->second;
      event->first.other += optimizer_state + gradients;
      trace_.moments.push_back(std::move(event->first));
    }
    for (Value& value : trace_.values) {
      if (value.held) value.held->last = trace_.moment_count() - 1;
    }
  }

  Trace trace_;
  std::vector<std::pair<Moment, Bytes>> events_;  // in the order of forward, with the gradients each leaves behind
};

}  // namespace

Trace example_trace() {
  return Builder().build();
}

}  // namespace reprise::tools
