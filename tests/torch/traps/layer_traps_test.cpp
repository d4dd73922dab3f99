// Layers whose saved values are more than a function of their input: masks, statistics, indices, layouts.
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

const Traps layer_traps({
    {"DropoutMasks",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::Dropout(0.3), nn::Linear(64, 64), nn::Dropout(0.5),
                            nn::Linear(64, 1));
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model, {torch::rand({4})});
       };
     }},
    {"DropoutOfWholeChannels",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 8, 3)), nn::Dropout2d(0.4), nn::Tanh(),
                            nn::Conv2d(nn::Conv2dOptions(8, 8, 3)), nn::FeatureAlphaDropout(0.3), nn::SELU());
       const auto x = torch::randn({4, 3, 16, 16});
       auto front = image_layers(3);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"DropoutInPlace",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::Dropout(nn::DropoutOptions(0.3).inplace(true)), nn::Tanh(),
                            nn::AlphaDropout(0.2), nn::Linear(64, 1));
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"BatchNormInTrainingUpdatesItsStatisticsOnce",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 8, 3)), nn::BatchNorm2d(8), nn::ReLU(),
                            nn::Conv2d(nn::Conv2dOptions(8, 8, 3)), nn::BatchNorm2d(8));
       const auto x = torch::randn({4, 3, 16, 16});
       return [=]() mutable {
         for (int i = 0; i < 3; ++i) model->forward(x).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"BatchNormInEvaluationUsesItsStatistics",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 8, 3)), nn::BatchNorm2d(8), nn::ReLU(),
                            nn::Conv2d(nn::Conv2dOptions(8, 8, 3)));
       const auto x = torch::randn({4, 3, 16, 16});
       auto front = image_layers(3);
       return [=]() mutable {
         model->train();
         model->forward(front->forward(x)).mean().backward();
         model->eval();
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"BatchNormTrainsBetweenForwardAndBackwardOfItsEvaluation",
     [] {
       nn::Sequential model(nn::Linear(16, 32), nn::BatchNorm1d(32), nn::Tanh(), nn::Linear(32, 1));
       const auto x = torch::randn({64, 16});
       auto front = layers(16);
       return [=]() mutable {
         model->train();
         const auto training = model->forward(front->forward(x)).pow(2).mean();
         model->eval();
         (model->forward(front->forward(x) * 2).pow(2).mean() + training).backward();
         return gradients(*model);
       };
     }},
    {"BatchNormWithoutStatisticsOrWithTheirPlainAverage",
     [] {
       nn::Sequential model(nn::Linear(16, 32), nn::BatchNorm1d(nn::BatchNorm1dOptions(32).track_running_stats(false)),
                            nn::Tanh(), nn::Linear(32, 32),
                            nn::BatchNorm1d(nn::BatchNorm1dOptions(32).momentum(std::optional<double>())), nn::ReLU());
       const auto x = torch::randn({64, 16});
       auto front = layers(16);
       return [=]() mutable {
         for (int i = 0; i < 2; ++i) model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"InstanceNormWithStatistics",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 8, 3)),
                            nn::InstanceNorm2d(nn::InstanceNorm2dOptions(8).affine(true).track_running_stats(true)),
                            nn::Tanh(), nn::Conv2d(nn::Conv2dOptions(8, 4, 3)));
       const auto x = torch::randn({4, 3, 16, 16});
       auto front = image_layers(3);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"GroupNormAndLayerNorm",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::LayerNorm(nn::LayerNormOptions({64})), nn::GELU(),
                            nn::GroupNorm(8, 64), nn::SiLU(), nn::Linear(64, 1));
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"EmbeddingWithPadding",
     [] {
       nn::Sequential model(nn::Embedding(nn::EmbeddingOptions(20, 16).padding_idx(0)), nn::GELU(), nn::Linear(16, 16),
                            nn::Tanh());
       const auto ids = torch::randint(0, 20, {16, 7});
       return [=]() mutable {
         model->forward(ids).sum().backward();
         return gradients(*model);
       };
     }},
    {"EmbeddingThatRenormalisesItsWeights",
     [] {
       nn::Sequential model(nn::Embedding(nn::EmbeddingOptions(20, 16).max_norm(0.5)), nn::GELU(), nn::Linear(16, 16),
                            nn::Tanh());
       const auto ids = torch::randint(0, 20, {16, 7});
       return [=]() mutable {
         model->forward(ids).sum().backward();
         return gradients(*model, {model->parameters()[0].detach()});
       };
     }},
    {"EmbeddingWithSparseGradients",
     [] {
       nn::Sequential model(nn::Embedding(nn::EmbeddingOptions(20, 16).sparse(true)), nn::Linear(16, 16), nn::Tanh());
       const auto ids = torch::randint(0, 20, {16, 7});
       Work work([=]() mutable {
         model->forward(ids).sum().backward();
         return gradients(*model);
       });
       work.keeps_graph = true;  // sparse gradients hold on to the indices, which are a copy if they were recomputed
       return work;
     },
     1, false, false, "the simulated one has no sparse tensors"},
    {"EmbeddingBags",
     [] {
       nn::EmbeddingBag bag(nn::EmbeddingBagOptions(20, 16).mode(torch::kMax));
       nn::Linear linear(16, 16);
       const auto ids = torch::randint(0, 20, {40}), offsets = torch::arange(0, 40, 5);
       return [=]() mutable {
         torch::tanh(linear(torch::gelu(bag->forward(ids, offsets)))).sum().backward();
         return gradients(*bag, gradients(*linear));
       };
     }},
    {"MaxPoolIndices",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)), nn::ReLU(), nn::MaxPool2d(2),
                            nn::Conv2d(nn::Conv2dOptions(16, 16, 3).padding(1)), nn::SiLU(), nn::AdaptiveMaxPool2d(3));
       const auto x = torch::randn({4, 3, 16, 16});
       auto front = image_layers(3);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"MaxUnpoolUsesThoseIndices",
     [] {
       nn::Conv2d one(nn::Conv2dOptions(3, 8, 3).padding(1)), two(nn::Conv2dOptions(8, 4, 3).padding(1));
       const auto x = torch::randn({4, 3, 16, 16});
       auto front = image_layers(3);
       return [=]() mutable {
         const auto [pooled, indices] =
             F::max_pool2d_with_indices(torch::tanh(one(front->forward(x))), F::MaxPool2dFuncOptions(2));
         const auto unpooled = F::max_unpool2d(torch::gelu(pooled), indices, F::MaxUnpool2dFuncOptions(2));
         two(unpooled).pow(2).mean().backward();
         return gradients(*one, gradients(*two));
       };
     }},
    {"AverageAndPowerPooling",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)), nn::Softplus(), nn::AvgPool2d(2),
                            nn::LPPool2d(nn::LPPool2dOptions(2, 2)), nn::AdaptiveAvgPool2d(2));
       const auto x = torch::randn({4, 3, 16, 16});
       auto front = image_layers(3);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"ConvolutionInGroups",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(4, 16, 3).padding(1).groups(2)), nn::Tanh(),
                            nn::Conv2d(nn::Conv2dOptions(16, 16, 3).dilation(2).groups(16)), nn::SiLU());
       const auto x = torch::randn({4, 4, 16, 16});
       return [=]() mutable {
         model->forward(x).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"ConvolutionWithChannelsLast",
     [] {
       nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)), nn::ReLU(),
                            nn::Conv2d(nn::Conv2dOptions(16, 16, 3).padding(1)), nn::Tanh(), nn::MaxPool2d(2));
       const auto x = torch::randn({4, 3, 16, 16}).contiguous(at::MemoryFormat::ChannelsLast);
       return [=]() mutable {
         const auto y = model->forward(x);
         y.pow(2).mean().backward();
         return gradients(*model, {y.detach()});
       };
     }},
    {"ConvolutionsTransposedAndOfOtherDimensions",
     [] {
       nn::Conv1d line(nn::Conv1dOptions(4, 8, 3));
       nn::ConvTranspose2d wider(nn::ConvTranspose2dOptions(4, 4, 2).stride(2));
       nn::Conv3d space(nn::Conv3dOptions(1, 4, 2));
       const auto x = torch::randn({4, 4, 8, 8});
       return [=]() mutable {
         const auto a = torch::tanh(line(x.flatten(2))).pow(2).sum();
         const auto b = torch::tanh(wider(x)).pow(2).sum();
         const auto c = torch::tanh(space(x.unsqueeze(1))).pow(2).sum();
         (a + b + c).backward();
         return gradients(*line, gradients(*wider, gradients(*space)));
       };
     }},
    {"TensorsInTheLayoutOfMkldnn",
     [] {
       const auto weight = torch::randn({8, 3, 3, 3}).to_mkldnn(), x = torch::randn({2, 3, 8, 8}).to_mkldnn();
       const auto scale = torch::randn({8}, torch::requires_grad());
       return [=] {
         at::Tensor y;
         {
           at::NoGradGuard no_grad;
           y = at::conv2d(x, weight).to_dense();
         }
         torch::tanh(y * scale.view({1, 8, 1, 1})).sum().backward();
         return Tensors{scale.grad()};
       };
     },
     1, false, false, "a layout of the CPU"},
    {"Losses",
     [] {
       nn::Linear linear(16, 10);
       const auto x = torch::randn({64, 16}), target = torch::randn({64, 10});
       auto front = layers(16);
       const auto classes = torch::randint(0, 10, {64});
       return [=]() mutable {
         const auto y = linear(front->forward(x));
         (F::cross_entropy(y, classes) + torch::nll_loss(torch::log_softmax(y * 2, 1), classes) +
          F::binary_cross_entropy_with_logits(y, torch::sigmoid(target)) + F::smooth_l1_loss(y, target) +
          F::kl_div(torch::log_softmax(y, 1), torch::softmax(target, 1), F::KLDivFuncOptions(torch::kBatchMean)) +
          F::hinge_embedding_loss(y, torch::sign(target)) + F::multi_margin_loss(y, classes) +
          F::cosine_embedding_loss(y, target, torch::ones({64})))
             .backward();
         return gradients(*linear);
       };
     }},
    {"ConnectionistTemporalClassification",
     [] {
       nn::Linear linear(8, 6);
       const auto x = torch::randn({20, 4, 8});
       const auto targets = torch::randint(1, 6, {4, 5});
       const auto input_lengths = torch::full({4}, 20, torch::kLong),
                  target_lengths = torch::full({4}, 5, torch::kLong);
       return [=]() mutable {
         F::ctc_loss(torch::log_softmax(torch::tanh(linear(x)), 2), targets, input_lengths, target_lengths).backward();
         return gradients(*linear);
       };
     }},
    {"ResamplingAndPadding",
     [] {
       nn::Conv2d conv(nn::Conv2dOptions(3, 4, 3));
       const auto x = torch::randn({2, 3, 10, 10});
       const auto grid = torch::rand({2, 6, 6, 2}) * 2 - 1;
       return [=]() mutable {
         auto h = torch::tanh(conv(F::pad(x, F::PadFuncOptions({1, 1, 1, 1}).mode(torch::kReflect))));
         h = F::interpolate(h, F::InterpolateFuncOptions()
                                   .size(std::vector<int64_t>{16, 16})
                                   .mode(torch::kBilinear)
                                   .align_corners(false));
         h = F::grid_sample(h, grid, F::GridSampleFuncOptions().align_corners(true));
         F::pixel_shuffle(torch::exp(h), F::PixelShuffleFuncOptions(2)).pow(2).mean().backward();
         return gradients(*conv);
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
