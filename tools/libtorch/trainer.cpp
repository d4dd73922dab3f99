#include "libtorch/trainer.h"

#include <ATen/CPUGeneratorImpl.h>

#include <chrono>
#include <exception>
#include <sstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "reprise/trace/error.h"
#include "torch/memory/meter.h"
#include "trace/whole_file.h"

namespace reprise::tools {
using namespace internal;
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Gpt new_model(const TrainerOptions& options) {
  torch::manual_seed(options.seed);
  return Gpt(options.model);
}

// Writes an archive whole or not at all. Errors do not pass through the archive's writer, which is in C.
void save_whole(torch::serialize::OutputArchive& archive, const std::filesystem::path& path) {
  WholeFile file(path);
  std::exception_ptr failed;
  const auto write = [&](const void* data, std::size_t bytes) -> std::size_t {
    try {
      file.write({static_cast<const char*>(data), bytes});
      return bytes;
    } catch (...) {
      failed = std::current_exception();
      return 0;
    }
  };
  try {
    archive.save_to(write);
  } catch (const c10::Error& error) {
    if (!failed) throw Error(path.string() + ": cannot be written: " + error.what_without_backtrace());
  }
  if (failed) std::rethrow_exception(failed);
  file.commit();
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, const Text& text)
    : options_(options),
      text_(text),
      model_(new_model(options)),
      optimizer_(model_->parameters(), torch::optim::AdamOptions(options.learning_rate)),
      draws_(at::make_generator<at::CPUGeneratorImpl>(options.seed)) {}

StepResult Trainer::step(Session* session, std::int64_t rerun_blocks) {
  StepResult result;
  const double start = seconds_now();
  meter::mark_peak();
  {
    std::optional<Step> step;
    if (session) step.emplace(session->step());
    const Text::Batch batch = text_.draw(options_.batch, options_.model.context, draws_);
    const torch::Tensor loss = model_->loss(batch.characters, batch.next, rerun_blocks);
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step();
    result.loss = loss.item<float>();
  }
  result.peak = meter::peak();
  result.seconds = seconds_now() - start;
  ++steps_;
  return result;
}

std::int64_t Trainer::parameters() const {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : model_->parameters()) count += parameter.numel();
  return count;
}

std::uint64_t Trainer::fingerprint() const {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const auto add = [&](const torch::Tensor& tensor) {
    const torch::Tensor bits = tensor.contiguous();
    XXH3_64bits_update(&state, bits.const_data_ptr(), bits.nbytes());
  };
  for (const torch::Tensor& parameter : model_->parameters()) {
    add(parameter.detach());
    const auto& states = optimizer_.state();
    const auto own = states.find(parameter.unsafeGetTensorImpl());
    if (own == states.end()) continue;
    const auto& adam = static_cast<const torch::optim::AdamParamState&>(*own->second);
    add(adam.exp_avg());
    add(adam.exp_avg_sq());
  }
  return XXH3_64bits_digest(&state);
}

// ---- save and resume -----------------------------------------------------------------------------------------------

std::string Trainer::description() const {
  std::ostringstream text;
  text.precision(17);
  const GptOptions& model = options_.model;
  text << "layers " << model.layers << ", width " << model.width << ", heads " << model.heads << ", context "
       << model.context << ", dropout " << model.dropout << ", vocabulary " << model.vocabulary << ", characters "
       << text_.characters() << ", batch " << options_.batch << ", learning rate " << options_.learning_rate
       << ", seed " << options_.seed;
  return text.str();
}

void Trainer::save(const std::filesystem::path& path) const {
  torch::serialize::OutputArchive archive, model, optimizer;
  model_->save(model);
  optimizer_.save(optimizer);
  archive.write("model", model);
  archive.write("optimizer", optimizer);
  archive.write("random", at::detail::getDefaultCPUGenerator().get_state(), /*is_buffer=*/true);
  archive.write("draws", draws_.get_state(), /*is_buffer=*/true);
  archive.write("steps", c10::IValue(steps_));
  archive.write("training", c10::IValue(description()));
  save_whole(archive, path);
}

void Trainer::load(const std::filesystem::path& path) {
  try {
    torch::serialize::InputArchive archive, model, optimizer;
    archive.load_from(path.string());
    c10::IValue training, steps;
    archive.read("training", training);
    if (training.toStringRef() != description()) {
      throw BadInput(path.string(), "training",
                     "it was saved with other options: " + training.toStringRef() + "; now: " + description());
    }
    archive.read("model", model);
    archive.read("optimizer", optimizer);
    model_->load(model);
    optimizer_.load(optimizer);
    torch::Tensor random, draws;
    archive.read("random", random, /*is_buffer=*/true);
    archive.read("draws", draws, /*is_buffer=*/true);
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(random);
    draws_.set_state(draws);
    archive.read("steps", steps);
    steps_ = steps.toInt();
  } catch (const c10::Error& error) {
    throw BadInput(path.string(), "", std::string("no saved training: ") + error.what_without_backtrace());
  }
}

}  // namespace reprise::tools
