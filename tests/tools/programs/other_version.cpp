// LibTorch's account of how it was built, from another version: preloaded, it is found before the real one.
#include <map>
#include <string>

namespace caffe2 {

[[gnu::visibility("default")]] const std::map<std::string, std::string>& GetBuildOptions() {
  static const std::map<std::string, std::string> options{{"TORCH_VERSION", "9.9.9"}};
  return options;
}

}  // namespace caffe2
