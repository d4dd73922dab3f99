#include "reprise_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "paths.h"

namespace reprise::testing {

namespace {

// With its outputs going to these files.
pid_t start(std::vector<std::string> words, const std::vector<std::string>& variables, const std::string& out,
            const std::string& err) {
  posix_spawn_file_actions_t redirections;
  posix_spawn_file_actions_init(&redirections);
  posix_spawn_file_actions_addopen(&redirections, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&redirections, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&redirections, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::vector<std::string> own = variables;
  std::vector<char*> environment;
  for (std::string& variable : own) environment.push_back(variable.data());  // the first of two counts
  for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);
  pid_t process = 0;
  const int failed =
      posix_spawn(&process, words[0].c_str(), &redirections, nullptr, pointers.data(), environment.data());
  posix_spawn_file_actions_destroy(&redirections);
  if (failed) throw std::runtime_error("cannot run " + words[0]);
  return process;
}

}  // namespace

// Into files, not pipes: a program that prints a lot does not have to be listened to while it runs.
Outcome run_program(std::vector<std::string> words, const std::vector<std::string>& variables, double interrupt_after) {
  const TemporaryFolder folder;
  const pid_t process = start(std::move(words), variables, (folder / "out").string(), (folder / "err").string());
  if (interrupt_after > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(interrupt_after));
    kill(process, SIGINT);
  }
  int status = 0;
  waitpid(process, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, folder.read("out"), folder.read("err")};
}

void kill_when_there(std::vector<std::string> words, const std::filesystem::path& file) {
  const pid_t process = start(std::move(words), {}, "/dev/null", "/dev/null");
  int status = 0;
  while (!std::filesystem::exists(file) && waitpid(process, &status, WNOHANG) == 0) std::this_thread::yield();
  kill(process, SIGKILL);
  waitpid(process, &status, 0);
}

Outcome run_command(const std::vector<std::string>& arguments, double interrupt_after) {
  std::vector<std::string> words = {REPRISE_COMMAND};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(std::move(words), {}, interrupt_after);
}

bool one_line(const std::string& text) {
  return text.size() > 1 && text.back() == '\n' && std::count(text.begin(), text.end(), '\n') == 1;
}

}  // namespace reprise::testing
