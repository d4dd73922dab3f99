// Trains one model in several processes, each on batches of its own and inside a byte budget of its own.
//
//   mpirun -n 2 data_parallel [SHARE OF THE PLAIN PEAK]      or without mpirun, alone
//
// A hook sees every gradient when backward has finished it, and starts to sum it over all ranks while backward goes on.
// Replaying does not run hooks again and does not change the order of backward, so all ranks sum the same gradients in
// the same order, whatever each of them evicts.
#include <mpi.h>
#include <reprise/reprise.h>
#include <torch/torch.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "compare.h"

namespace {

constexpr int rows = 512, width = 128, layers = 8;

int rank_of_this() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int number_of_ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

// Sums over ranks that are under way.
class Sums {
 public:
  // Nobody may use the gradient before `finish`.
  void start(const torch::Tensor& gradient) {
    gradients_.push_back(gradient);
    MPI_Iallreduce(MPI_IN_PLACE, gradient.data_ptr<float>(), static_cast<int>(gradient.numel()), MPI_FLOAT, MPI_SUM,
                   MPI_COMM_WORLD, &requests_.emplace_back());
  }

  void finish(reprise::Session& session) {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    for (torch::Tensor& gradient : gradients_) {
      session.touched(gradient);  // MPI wrote into it, and LibTorch did not see that
      gradient.div_(number_of_ranks());
    }
    requests_.clear();
    gradients_.clear();
  }

 private:
  std::vector<torch::Tensor> gradients_;
  std::vector<MPI_Request> requests_;
};

// Called by backward when the gradient of a parameter is complete.
struct SumGradient : torch::autograd::PostAccumulateGradHook {
  Sums& sums;

  explicit SumGradient(Sums& all) : sums(all) {}
  void operator()(const torch::Tensor& parameter) override { sums.start(parameter.grad()); }
};

// Throws unless this rank's model is the one of rank 0, bit for bit.
void check_same_model(const torch::nn::Module& model) {
  for (const torch::Tensor& parameter : model.parameters()) {
    const torch::Tensor first = parameter.detach().clone();
    MPI_Bcast(first.data_ptr<float>(), static_cast<int>(first.numel()), MPI_FLOAT, 0, MPI_COMM_WORLD);
    if (!torch::equal(first, parameter)) throw std::runtime_error("ranks have different models");
  }
}

Outcome train(reprise::Session& session) {
  torch::manual_seed(1);  // the same model everywhere
  torch::nn::Sequential model;
  for (int i = 0; i < layers; ++i) {
    model->push_back(torch::nn::Linear(width, width));
    model->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    model->push_back(torch::nn::GELU());
    model->push_back(torch::nn::Dropout(0.1));
  }
  model->push_back(torch::nn::Linear(width, 1));
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-3));

  Sums sums;
  for (const torch::Tensor& parameter : model->parameters()) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<SumGradient>(sums));
  }

  torch::manual_seed(100 + rank_of_this());  // other batches and other masks of dropout
  Outcome outcome;
  for (int i = 0; i < 12; ++i) {
    const torch::Tensor x = torch::randn({rows, width}), y = x.slice(1, 0, 8).sum(1, true).sin();
    auto step = session.step();  // everything below runs inside the budget
    const torch::Tensor loss = torch::nn::functional::mse_loss(model->forward(x), y);
    optimizer.zero_grad();
    loss.backward();  // what was evicted is replayed here, and gradients are on their way
    sums.finish(session);
    optimizer.step();
    outcome.losses.push_back(loss.item<float>());
  }
  check_same_model(*model);
  outcome.add(*model);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;  // LibTorch and Reprise have some, but only this one calls MPI
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  at::set_num_threads(1);
  std::setvbuf(stdout, nullptr, _IOFBF, 1 << 16);  // what a rank says comes in one piece, at its end
  std::printf("\nrank %d of %d\n", rank_of_this(), number_of_ranks());

  const int code = compare(train, share_of_peak(argc, argv, 0.5));
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);  // or other ranks would wait for this one
  MPI_Finalize();
}
