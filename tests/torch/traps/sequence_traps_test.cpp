// Recurrent networks and attention: many small values, gates that share a storage, composite operators.
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

const Traps recurrent({
    {"LstmCellInALoop",
     [] {
       nn::LSTMCell cell(16, 32);
       const auto x = torch::randn({20, 16, 16});
       return [=]() mutable {
         auto h = torch::zeros({16, 32}), c = torch::zeros({16, 32});
         for (int i = 0; i < 20; ++i) std::tie(h, c) = cell(x[i], std::make_tuple(h, c));
         h.sum().backward();
         return gradients(*cell);
       };
     }},
    {"GruCellInALoop",
     [] {
       nn::GRUCell cell(16, 32);
       const auto x = torch::randn({20, 16, 16});
       return [=]() mutable {
         auto h = torch::zeros({16, 32});
         for (int i = 0; i < 20; ++i) h = cell(x[i], h);
         h.sum().backward();
         return gradients(*cell);
       };
     }},
    {"LstmOfTwoLayersWithDropout",
     [] {
       nn::LSTM lstm(nn::LSTMOptions(16, 32).num_layers(2).dropout(0.2));
       const auto x = torch::randn({20, 16, 16});
       return [=]() mutable {
         torch::tanh(std::get<0>(lstm(x))).sum().backward();
         return gradients(*lstm);
       };
     }},
    {"LstmOverPackedSequences",
     [] {
       nn::LSTM lstm(nn::LSTMOptions(16, 32).batch_first(true));
       const auto x = torch::randn({8, 10, 16});
       const auto lengths = torch::tensor({10, 9, 9, 7, 5, 4, 2, 1});
       return [=]() mutable {
         const auto packed = nn::utils::rnn::pack_padded_sequence(x, lengths, true);
         const auto output = std::get<0>(lstm->forward_with_packed_input(packed));
         torch::tanh(std::get<0>(nn::utils::rnn::pad_packed_sequence(output, true))).sum().backward();
         return gradients(*lstm);
       };
     }},
    {"GruInBothDirections",
     [] {
       nn::GRU gru(nn::GRUOptions(16, 32).bidirectional(true));
       const auto x = torch::randn({20, 16, 16});
       return [=]() mutable {
         torch::tanh(std::get<0>(gru(x))).sum().backward();
         return gradients(*gru);
       };
     }},
    {"PlainRecurrentNetwork",
     [] {
       nn::RNN rnn(nn::RNNOptions(16, 32).num_layers(2).nonlinearity(torch::kReLU));
       const auto x = torch::randn({20, 16, 16});
       return [=]() mutable {
         torch::tanh(std::get<0>(rnn(x))).sum().backward();
         return gradients(*rnn);
       };
     }},
});

const Traps attention({
    {"MultiheadAttention",
     [] {
       nn::MultiheadAttention attention_(nn::MultiheadAttentionOptions(32, 4).dropout(0.1));
       const auto x = torch::randn({24, 4, 32});
       return [=]() mutable {
         torch::tanh(std::get<0>(attention_(x, x, x))).sum().backward();
         return gradients(*attention_);
       };
     }},
    {"TransformerEncoder",
     [] {
       const auto layer = nn::TransformerEncoderLayerOptions(32, 4).dim_feedforward(64).dropout(0.1);
       nn::TransformerEncoder encoder{nn::TransformerEncoderLayer(layer), 2};
       const auto x = torch::randn({24, 4, 32});
       return [=]() mutable {
         torch::tanh(encoder(x)).sum().backward();
         return gradients(*encoder);
       };
     }},
    {"TransformerWithDecoderAndMask",
     [] {
       nn::Transformer transformer(nn::TransformerOptions(32, 4, 1, 1).dim_feedforward(64).dropout(0.1));
       const auto source = torch::randn({12, 4, 32}), target = torch::randn({10, 4, 32});
       return [=]() mutable {
         const auto mask = nn::TransformerImpl::generate_square_subsequent_mask(10);
         torch::tanh(transformer->forward(source, target, {}, mask)).sum().backward();
         return gradients(*transformer);
       };
     }},
    {"ScaledDotProductAttentionWithTheFlashKernel",
     [] {
       nn::Linear linear(32, 96);
       const auto x = torch::randn({4, 24, 32});
       return [=]() mutable {
         const auto q = linear(x).view({4, 24, 3, 4, 8}).permute({2, 0, 3, 1, 4});
         at::scaled_dot_product_attention(q[0], q[1], q[2], {}, 0.0, true).pow(2).sum().backward();
         return gradients(*linear);
       };
     }},
    {"ScaledDotProductAttentionWithMaskAndDropout",
     [] {
       nn::Linear linear(32, 96);
       const auto x = torch::randn({4, 24, 32});
       const auto mask = torch::rand({24, 24}) < 0.8;
       return [=]() mutable {
         const auto q = linear(x).view({4, 24, 3, 4, 8}).permute({2, 0, 3, 1, 4});
         at::scaled_dot_product_attention(q[0], q[1], q[2], mask.logical_or(torch::eye(24, torch::kBool)), 0.2)
             .pow(2)
             .sum()
             .backward();
         return gradients(*linear);
       };
     }},
    {"AttentionWrittenOut",
     [] {
       nn::Linear linear(32, 96), out(32, 32);
       const auto x = torch::randn({4, 24, 32});
       const auto mask = torch::ones({24, 24}, torch::kBool).triu(1);
       return [=]() mutable {
         const auto q = linear(x).view({4, 24, 3, 4, 8}).permute({2, 0, 3, 1, 4});
         auto weights = torch::matmul(q[0], q[1].transpose(-2, -1)) / std::sqrt(8.0);
         weights = torch::dropout(torch::softmax(weights.masked_fill(mask, -1e9), -1), 0.1, true);
         const auto y = torch::matmul(weights, q[2]).transpose(1, 2).contiguous().view({4, 24, 32});
         (x + torch::dropout(out(y), 0.1, true)).pow(2).mean().backward();
         return gradients(*linear, gradients(*out));
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
