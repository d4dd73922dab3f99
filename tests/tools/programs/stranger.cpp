// A program that knows nothing of Reprise: trains a small network, prints every loss with all its bits, and exits with
// the code it was given.
//
//   trainer CODE [thread] [unreached] [threads] [fork] [keeps] [preloads] [begins LIBRARY]
//
// thread: it trains on another thread. unreached: a part of the graph is never reached by backward. threads: every step
// is on a new thread. fork: after half of the steps there is a child that does the rest, too, prints nothing and exits;
// it is killed, and that is printed, if it hangs. keeps: a graph from before the first step is kept to the end.
// preloads: it does not train, but prints its LD_PRELOAD. begins: nor does it then, but loads libreprise_live.so and
// calls what libreprise_preload.so calls in it.
//
// It trains on the CPU; linked with on_device.cpp, on the simulated accelerator.
#include <dlfcn.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

[[gnu::weak]] void choose_device();

namespace {

constexpr int steps = 8;

void wait_for(pid_t child) {
  int status = 0;
  for (int i = 0; i < 6000; ++i) {
    if (waitpid(child, &status, WNOHANG) == child) {
      if (status != 0) std::cout << "the child failed: " << status << '\n';
      return;
    }
    usleep(10000);
  }
  kill(child, SIGKILL);
  std::cout << "the child hangs\n";
}

void train(bool unreached, bool threads, bool forks, bool keeps) {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(64, 256), torch::nn::GELU(), torch::nn::Dropout(0.1),
                              torch::nn::Linear(256, 256), torch::nn::GELU(), torch::nn::Dropout(0.1),
                              torch::nn::Linear(256, 256), torch::nn::Tanh(), torch::nn::Linear(256, 1));
  torch::optim::Adam optimizer(model->parameters());
  const torch::Tensor kept = keeps ? model->forward(torch::randn({4, 64})) : torch::Tensor();
  pid_t child = -1;
  const auto step = [&](int i) {
    if (forks && i == steps / 2) {
      std::cout.flush();
      child = fork();
    }
    const torch::Tensor y = model->forward(torch::randn({2048, 64}));
    const torch::Tensor beside = unreached ? y.sigmoid() : torch::Tensor();
    const torch::Tensor loss = y.pow(2).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (child != 0) std::cout << std::hexfloat << loss.item<float>() << '\n';
  };
  for (int i = 0; i < steps; ++i) {
    if (threads) {
      std::thread(step, i).join();
    } else {
      step(i);
    }
  }
  if (child == 0) std::exit(0);
  if (child > 0) wait_for(child);
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  if (choose_device) choose_device();
  bool thread = false, unreached = false, threads = false, forks = false, keeps = false, preloads = false;
  for (int i = 2; i < argc; ++i) {
    thread |= argv[i] == std::string("thread");
    unreached |= argv[i] == std::string("unreached");
    threads |= argv[i] == std::string("threads");
    forks |= argv[i] == std::string("fork");
    keeps |= argv[i] == std::string("keeps");
    preloads |= argv[i] == std::string("preloads");
  }
  if (argc > 3 && argv[2] == std::string("begins")) {
    void* const live = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
    void* const begin = live ? dlsym(live, "reprise_begin") : nullptr;
    if (!begin) return 1;
    reinterpret_cast<void (*)()>(begin)();
    return std::atoi(argv[1]);
  }
  if (preloads) {
    const char* const all = std::getenv("LD_PRELOAD");
    std::cout << (all ? all : "none") << '\n';
    return std::atoi(argv[1]);
  }
  if (thread) {
    std::thread(train, unreached, threads, forks, keeps).join();
  } else {
    train(unreached, threads, forks, keeps);
  }
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
