// Traps with threads in them: the work of one step is done by several.
#include <future>
#include <thread>

#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;

const Traps thread_traps({
    {"BackwardFromAnotherThread",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto loss = model->forward(front->forward(x)).pow(2).mean();
         std::async(std::launch::async, [&] { loss.backward(); }).get();
         return gradients(*model);
       };
     }},
    {"ForwardInAnotherThread",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         at::Tensor loss;
         std::async(std::launch::async, [&] { loss = model->forward(front->forward(x)).pow(2).mean(); }).get();
         (loss + model->forward(front->forward(x)).sum()).backward();
         return gradients(*model);
       };
     }},
    {"GraphIsDroppedInAnotherThread",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto loss = model->forward(front->forward(x)).pow(2).mean();
         std::async(std::launch::async, [dropped = std::move(loss)]() mutable { dropped.reset(); }).get();
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"BackwardFromAnotherThreadAfterTheStep",
     [] {
       auto model = small_model();
       const auto loss = std::make_shared<at::Tensor>();
       return Work(
           [=]() mutable {
             *loss = model->forward(torch::randn({96, 32})).pow(2).mean();
             return Tensors{loss->detach()};
           },
           [=] {
             std::async(std::launch::async, [&] { loss->backward(); }).get();
             loss->reset();
             return gradients(*model);
           });
     },
     2},
    {"KernelsUseTwoThreads",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 16, 3)), nn::BatchNorm2d(16), nn::ReLU(), nn::MaxPool2d(2),
                            nn::Flatten(), nn::Dropout(0.3), nn::Linear(16 * 49, 64), nn::GELU(), nn::Linear(64, 10));
       const auto x = torch::randn({32, 3, 16, 16});
       const auto threads = at::get_num_threads();
       return [=]() mutable {
         at::set_num_threads(2);
         torch::log_softmax(model->forward(x), 1).pow(2).mean().backward();
         at::set_num_threads(threads);
         return gradients(*model);
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
