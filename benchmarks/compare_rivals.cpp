#include "compare_rivals.h"

#include "reprise/trace/error.h"

namespace reprise::benchmarks {
namespace {

using Rivals = std::vector<Rival>;

Rival rerun(const std::string& way, const std::string& what, const std::string& mark) {
  return {Engine::cpp, way, "re-running " + what + ", C++", "C++ " + mark};
}

Rival checkpoint(const std::string& way, const std::string& what, const std::string& mark) {
  return {Engine::python, way, "`checkpoint` " + what, mark};
}

void add_compiled(Rivals& rivals, const std::vector<std::string>& budgets) {
  for (const std::string& budget : budgets) {
    rivals.push_back({Engine::python, "budget " + budget, "`torch.compile`, aot_eager, memory budget " + budget,
                      "compile " + budget});
  }
}

void add_first_blocks(Rivals& rivals) {
  for (const char* const count : {"2", "4", "6"}) {
    const std::string k = count;
    rivals.push_back(rerun("first " + k, "each of the first " + k + " of 8 blocks", "first " + k));
    rivals.push_back(checkpoint("first " + k, "on the first " + k + " of 8 blocks", "first " + k));
  }
}

Rivals gpt(bool fused, bool quick) {
  Rivals rivals{rerun("every 1", "every block", "every block"), checkpoint("every 1", "per block", "per block")};
  const Rival products{Engine::python, "selective mm addmm", "selective `checkpoint`, saves mm and addmm",
                       "SAC mm, addmm"};
  if (quick) {
    rivals.push_back(products);
    add_compiled(rivals, {"0.5"});
    return rivals;
  }
  rivals.push_back(rerun("every 2", "every 2 blocks", "every 2 blocks"));
  add_first_blocks(rivals);
  rivals.push_back(products);
  if (fused) {
    rivals.push_back({Engine::python, "selective mm addmm bmm _scaled_dot_product_flash_attention_for_cpu",
                      "selective `checkpoint`, saves products and attention", "SAC mm, attention"});
    rivals.push_back(checkpoint("parts mlp", "around each MLP", "MLP"));
  } else {
    rivals.push_back(checkpoint("parts core", "around each core attention", "core attention"));
    rivals.push_back(checkpoint("parts core mlp", "around each core attention and each MLP", "core attention, MLP"));
  }
  add_compiled(rivals, {"1.0", "0.9", "0.7", "0.5", "0.3"});
  return rivals;
}

Rivals resnet(bool quick) {
  Rivals rivals{rerun("every 1", "the stem and every block", "every block"),
                checkpoint("every 1", "on the stem and every block", "per block")};
  if (quick) return rivals;
  for (const int blocks : {2, 5}) {
    const std::string way = "first " + std::to_string(1 + blocks);
    const std::string number = std::to_string(blocks);
    rivals.push_back(rerun(way, "the stem and " + number + " of 9 blocks", "stem, " + number));
    rivals.push_back(checkpoint(way, "on the stem and " + number + " of 9 blocks", "stem, " + number));
  }
  return rivals;
}

Rivals unet() {
  return {rerun("levels", "every level", "every level"), checkpoint("levels", "per level", "per level")};
}

Rivals lstm(bool quick) {
  Rivals rivals;
  for (const char* const count : {"14", "20"}) {
    const std::string k = count;
    rivals.push_back(rerun("every " + k, "every " + k + " cells", k + " cells"));
    rivals.push_back(checkpoint("every " + k, "every " + k + " cells", k + " cells"));
    if (quick) break;
  }
  return rivals;
}

}  // namespace

std::string name(Engine engine) {
  return engine == Engine::cpp ? "C++" : "Python";
}

std::vector<Rival> rivals_of(const std::string& model, bool quick) {
  if (model == "gpt") return gpt(false, quick);
  if (model == "gpt-sdpa") return gpt(true, quick);
  if (model == "resnet") return resnet(quick);
  if (model == "unet") return unet();
  if (model == "lstm") return lstm(quick);
  throw BadOption("[bench compare] there is nothing to compare model '" + model + "' with");
}

const std::vector<ComparedModel>& compared_models() {
  static const std::vector<ComparedModel> all{{"gpt", "GPT, 8 layers, dropout"},
                                              {"gpt-sdpa", "GPT, 8 layers, fused attention"},
                                              {"resnet", "ResNet, 21 convolutions"},
                                              {"unet", "U-Net, 3 levels"},
                                              {"lstm", "LSTM, 200 cells"}};
  return all;
}

}  // namespace reprise::benchmarks
