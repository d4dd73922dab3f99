#include "live_resident.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

namespace reprise::benchmarks {
namespace {

// A line of /proc/self/status that counts kilobytes.
Bytes status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

// The system's high-water mark begins anew. Where that is not allowed, making the model counts as well.
void evict_high_water() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

std::string read_all(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

}  // namespace

ResidentWatch::ResidentWatch()
    : start_{status_bytes("VmRSS"), status_bytes("RssAnon")}, most_anonymous_(start_.anonymous) {
  evict_high_water();
  watcher_ = std::thread([this] {
    while (!stop_.load()) {
      look();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
}

ResidentWatch::~ResidentWatch() {
  stop_ = true;
  watcher_.join();
}

void ResidentWatch::look() {
  most_anonymous_ = std::max(most_anonymous_.load(), status_bytes("RssAnon"));
}

Growth ResidentWatch::growth() const {
  return {status_bytes("VmHWM") - start_.resident, most_anonymous_.load() - start_.anonymous};
}

void write_growth(const Growth& growth) {
  std::cout << nlohmann::json{{"resident", growth.resident}, {"anonymous", growth.anonymous}}.dump() << std::endl;
}

std::optional<Growth> growth_of_child(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"bench_training"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int spawned = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  const std::string text = spawned == 0 ? read_all(ends[0]) : "";
  ::close(ends[0]);
  int status = 0;
  if (spawned != 0 || ::waitpid(child, &status, 0) < 0 || status != 0) {
    std::cerr << "[bench live] the child that runs only Reprise steps failed (status " << status << ")\n";
    return std::nullopt;
  }
  const nlohmann::json row = nlohmann::json::parse(text);
  return Growth{row.at("resident"), row.at("anonymous")};
}

}  // namespace reprise::benchmarks
