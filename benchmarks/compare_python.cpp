#include "compare_python.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace reprise::benchmarks {
namespace {

// One thread, a heap that keeps what was freed (as the C++ sides have it), and its meter in front.
std::vector<std::string> environment_of_child() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string key = text.substr(0, text.find('='));
    if (key != "LD_PRELOAD" && key != "OMP_NUM_THREADS" && key != "MKL_NUM_THREADS" && key != "GLIBC_TUNABLES") {
      result.push_back(text);
    }
  }
  result.emplace_back("LD_PRELOAD=" REPRISE_HEAP_METER);
  result.emplace_back("OMP_NUM_THREADS=1");
  result.emplace_back("MKL_NUM_THREADS=1");
  result.emplace_back("GLIBC_TUNABLES=glibc.malloc.trim_threshold=8589934592:glibc.malloc.mmap_threshold=8589934592");
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

// The process and the two pipes to it. It ends when its stdin does.
class PythonPeers::Child {
 public:
  explicit Child(const std::string& python) {
    signal(SIGPIPE, SIG_IGN);  // a child that is gone is an error of the write
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) throw PeerError("there are no pipes to it");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<std::string> words{python, REPRISE_SOURCE_DIR "/benchmarks/compare_peers.py"};
    std::vector<std::string> variables = environment_of_child();
    const int spawned = ::posix_spawnp(&process_, python.c_str(), &actions, nullptr, pointers_to(words).data(),
                                       pointers_to(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    to_ = ::fdopen(in[1], "w");
    from_ = ::fdopen(out[0], "r");
    if (spawned != 0) process_ = 0;
  }
  ~Child() {
    std::fclose(to_);
    std::fclose(from_);
    if (process_ != 0) ::waitpid(process_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns the answer to one line. Empty if no process answers.
  std::string ask(const std::string& line) {
    if (process_ == 0 || std::fprintf(to_, "%s\n", line.c_str()) < 0 || std::fflush(to_) != 0) return "";
    std::string answer;
    for (int c = 0; (c = std::fgetc(from_)) != EOF && c != '\n';) answer += static_cast<char>(c);
    return answer;
  }

 private:
  pid_t process_ = 0;
  FILE *to_ = nullptr, *from_ = nullptr;
};

PythonPeers::PythonPeers(const std::string& python) {
  std::vector<std::string> candidates{python};
  if (python.empty()) candidates = {"python3", REPRISE_SOURCE_DIR "/.venv/bin/python"};
  std::string why;
  for (const std::string& candidate : candidates) {
    child_ = std::make_unique<Child>(candidate);
    try {
      const nlohmann::json hello = ask({{"do", "hello"}});
      versions_ = "torch " + hello.at("torch").get<std::string>() + ", Python " + hello.at("python").get<std::string>();
      return;
    } catch (const PeerError& error) {
      const std::string which = std::filesystem::path(candidate).filename().string();
      why += (why.empty() ? "" : "; ") + which + ": " + error.what();
    }
  }
  throw PeerError(why);
}

PythonPeers::~PythonPeers() = default;

void PythonPeers::use_model(const std::string& name) {
  ask({{"do", "model"}, {"model", name}});
}

void PythonPeers::prepare(const std::string& way) {
  ask({{"do", "prepare"}, {"way", way}});
}

Sample PythonPeers::step(const std::string& way) {
  const nlohmann::json answer = ask({{"do", "step"}, {"way", way}});
  Sample sample{answer.at("seconds"), answer.at("peak"), std::nullopt, answer.at("buffers_equal")};
  if (!answer.at("gradient_error").is_null()) sample.gradient_error = answer.at("gradient_error").get<double>();
  return sample;
}

nlohmann::json PythonPeers::ask(const nlohmann::json& request) {
  const std::string text = child_->ask(request.dump());
  if (text.empty()) throw PeerError("it cannot be started, or has ended");
  nlohmann::json answer = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) throw PeerError("it answered: " + text.substr(0, 100));
  if (answer.contains("error")) throw PeerError(answer.at("error").get<std::string>());
  return answer;
}

}  // namespace reprise::benchmarks
