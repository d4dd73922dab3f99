#include "libtorch/rerun.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <utility>

#include "torch/libtorch/libtorch_versions.h"

namespace reprise::tools {
namespace {

using internal::libtorch::make_node;
using internal::libtorch::PointerToNode;
using torch::autograd::edge_list;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// Where the backward pass of a region starts. Gradients that are given to the engine as such are alive until it is
// done; from here they are handed over to the first operators.
class HandOver : public torch::autograd::Node {
 public:
  HandOver(edge_list edges, variable_list gradients) : Node(std::move(edges)), gradients_(std::move(gradients)) {}
  std::string name() const override { return "HandOver"; }
  variable_list apply(variable_list&&) override { return std::move(gradients_); }

 private:
  variable_list gradients_;
};

// Where it ends: at the region's inputs. As leaves they would get copies of gradients that are views.
class Arrive : public torch::autograd::Node {
 public:
  std::string name() const override { return "Arrive"; }
  variable_list apply(variable_list&& gradients) override {
    arrived_ = std::move(gradients);
    return {};
  }
  // One for each input that requires a gradient; none if backward did not come here.
  variable_list take() { return std::move(arrived_); }

 private:
  variable_list arrived_;
};

// The region in autograd's graph. Its edges are those of the region's inputs; the gradients of parameters inside are
// accumulated by the backward pass that it runs itself.
class Region : public torch::autograd::Node {
 public:
  Region(std::function<Tensors(const Tensors&)> body, const Tensors& inputs)
      : Node(torch::autograd::collect_next_edges(inputs)),
        body_(std::move(body)),
        generator_state_(at::detail::getDefaultCPUGenerator().get_state()) {
    for (const torch::Tensor& input : inputs) {
      inputs_.emplace_back(input, /*is_output=*/false);
      requires_gradient_.push_back(input.requires_grad());
    }
  }

  std::string name() const override { return "Region"; }

  variable_list apply(variable_list&& gradients) override {
    const auto arrive = make_node<Arrive>();
    backward_through(edges_of_second_run(inputs_again(arrive)), std::move(gradients));
    variable_list arrived = arrive->take();
    variable_list result(inputs_.size());
    for (std::size_t i = 0, next = 0; i < inputs_.size() && next < arrived.size(); ++i) {
      if (requires_gradient_[i]) result[i] = std::move(arrived[next++]);
    }
    return result;
  }

  void release_variables() override {
    for (SavedVariable& saved : inputs_) saved.reset_data();
  }

 private:
  Tensors inputs_again(const PointerToNode<Arrive>& arrive) const {
    Tensors inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(inputs_[i].unpack().detach());
      if (requires_gradient_[i]) torch::autograd::create_gradient_edge(inputs.back(), arrive);
    }
    return inputs;
  }

  // Its outputs are gone when this returns; only their places in the graph are needed.
  edge_list edges_of_second_run(const Tensors& inputs) const {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const torch::Tensor now = generator.get_state();
    generator.set_state(generator_state_);
    const at::AutoGradMode with_graph(true);
    edge_list edges;
    for (const torch::Tensor& output : body_(inputs)) edges.push_back(torch::autograd::impl::gradient_edge(output));
    generator.set_state(now);
    return edges;
  }

  static void backward_through(edge_list edges, variable_list gradients) {
    torch::Tensor start = torch::empty({0});
    const auto root = make_node<HandOver>(std::move(edges), std::move(gradients));
    root->add_input_metadata(start);
    torch::autograd::Engine::get_default_engine().execute({{root, 0}}, {start}, /*keep_graph=*/false,
                                                          /*create_graph=*/false, /*accumulate_grad=*/true);
  }

  std::function<Tensors(const Tensors&)> body_;
  std::vector<SavedVariable> inputs_;
  std::vector<bool> requires_gradient_;
  torch::Tensor generator_state_;
};

}  // namespace

Tensors rerun(std::function<Tensors(const Tensors&)> body, const Tensors& inputs) {
  const auto node = make_node<Region>(body, inputs);
  Tensors outputs;
  {
    const at::NoGradGuard without_graph;
    outputs = body(inputs);
  }
  for (torch::Tensor& output : outputs) torch::autograd::create_gradient_edge(output, node);
  return outputs;
}

torch::Tensor rerun(std::function<torch::Tensor(const torch::Tensor&)> body, const torch::Tensor& input) {
  return rerun([body = std::move(body)](const Tensors& in) { return Tensors{body(in[0])}; }, Tensors{input})[0];
}

}  // namespace reprise::tools
