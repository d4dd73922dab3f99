#include "torch/random/guests.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <optional>
#include <random>

#include "torch/memory/meter.h"

namespace reprise::testing {
using namespace internal;

using at::Tensor;

void expect_gradient(const Tensor& x, const Tensor& mask, const char* where) {
  if (!x.grad().defined()) throw Error(std::string("[") + where + "] there is no gradient");
  if (!at::equal(x.grad(), mask))
    throw Error(std::string("[") + where + "] the gradient is not the mask that was drawn");
}

bool is_refusal(const std::exception& error) {
  const std::string text = error.what();
  return text.find("[budget]") != std::string::npos || text.find("bad_alloc") != std::string::npos;
}

Guest::Guest(std::string name, std::function<void(std::uint64_t)> round, std::chrono::milliseconds pause)
    : name_(std::move(name)), round_(std::move(round)), pause_(pause), thread_([this] { live(); }) {}

Guest::~Guest() {
  leave();
  thread_.join();
}

std::string Guest::first_complaint() const {
  const std::scoped_lock lock(mutex_);
  return complaint_;
}

void Guest::live() {
  for (; !leaving_; ++rounds_) {
    try {
      round_(rounds_);
    } catch (const std::exception& error) {
      if (is_refusal(error)) {
        ++refused_;
      } else {
        ++complaints_;
        const std::scoped_lock lock(mutex_);
        if (complaint_.empty()) complaint_ = "round " + std::to_string(rounds_) + ": " + error.what();
      }
    }
    if (pause_.count() > 0) std::this_thread::sleep_for(pause_);
  }
  gone_ = true;
}

namespace {
std::atomic<std::uint64_t> replayed{0};
}
std::uint64_t replays() {
  return replayed;
}
void count_replays(const Session& session) {
  replayed += static_cast<std::uint64_t>(session.summary().replays);
}

namespace {

SessionOptions within(Bytes budget, const char* name, int planning = 0) {
  SessionOptions options;
  options.budget = budget;
  options.planning_time = std::chrono::milliseconds(planning);
  options.name = name;
  return options;
}

// Something random to be evicted, and enough beside it that there is a reason to.
Tensor masked_loss(const Tensor& x, Tensor& mask, int layers) {
  mask = at::bernoulli(x.detach(), 0.5) * at::randn_like(x.detach());
  Tensor h = x.detach();
  for (int i = 0; i < layers; ++i) h = at::tanh(h * 1.01 + x * 0.0);
  return (x * mask).sum() + h.sum() * 0.0;
}

struct Training {
  Tensor x, mask;
  void forward_and_backward(std::int64_t rows) {
    x = at::ones({rows, 64}).requires_grad_(true);
    masked_loss(x, mask, 8).backward();
  }
};

std::unique_ptr<Guest> second_trainer(Bytes budget) {
  const auto session = std::make_shared<Session>(within(budget, "second trainer", 50));
  return std::make_unique<Guest>("second trainer", [=](std::uint64_t round) {
    Training training;
    {
      const Step step = session->step();
      training.forward_and_backward(64 + static_cast<std::int64_t>(round % 5) * 16);
    }
    count_replays(*session);
    expect_gradient(training.x, training.mask, "second trainer");
  });
}

// Allocates under the lock of the generator.
std::unique_ptr<Guest> sampler() {
  const Tensor weights = at::rand({5000}) + 0.01;
  return std::make_unique<Guest>("sampler", [=](std::uint64_t) {
    const Tensor chosen = at::multinomial(weights, 64, true);
    if (chosen.max().item<std::int64_t>() >= 5000) throw Error("[sampler] there is no such row");
  });
}

std::unique_ptr<Guest> threads_that_come_and_go(Bytes budget) {
  const auto session = std::make_shared<Session>(within(budget, "threads that come and go"));
  return std::make_unique<Guest>("threads that come and go", [=](std::uint64_t) {
    Training training;
    std::exception_ptr thrown;
    std::thread([&] {
      try {
        const Step step = session->step();
        training.forward_and_backward(48);
      } catch (...) {
        thrown = std::current_exception();
      }
    }).join();
    if (thrown) std::rethrow_exception(thrown);
    count_replays(*session);
    expect_gradient(training.x, training.mask, "threads that come and go");
  });
}

// One thread for all backwards, as a pipeline has.
class BackwardThere {
 public:
  BackwardThere() : thread_([this] { work(); }) {}
  ~BackwardThere() {
    {
      const std::scoped_lock lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void backward(Tensor loss) {
    std::unique_lock lock(mutex_);
    loss_ = std::move(loss);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !loss_.defined(); });
    if (auto thrown = std::exchange(thrown_, nullptr)) std::rethrow_exception(thrown);
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || loss_.defined(); });
      if (ending_) return;
      try {
        loss_.backward();
      } catch (...) {
        thrown_ = std::current_exception();
      }
      loss_.reset();
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  Tensor loss_;
  std::exception_ptr thrown_;
  bool ending_ = false;
  std::thread thread_;
};

std::unique_ptr<Guest> forward_here_and_backward_there(Bytes budget) {
  const auto session = std::make_shared<Session>(within(budget, "forward here, backward there", 50));
  const auto there = std::make_shared<BackwardThere>();
  return std::make_unique<Guest>("forward here, backward there", [=](std::uint64_t) {
    Training training;
    training.x = at::ones({48, 64}).requires_grad_(true);
    {
      const Step step = session->step();
      there->backward(masked_loss(training.x, training.mask, 8));
    }
    count_replays(*session);
    expect_gradient(training.x, training.mask, "forward here, backward there");
  });
}

// An exception of the user's own, in forward or in a hook of backward. Every hundred rounds in a new session.
std::unique_ptr<Guest> one_who_throws(Bytes budget) {
  const auto session = std::make_shared<std::optional<Session>>();
  return std::make_unique<Guest>("one who throws", [=](std::uint64_t round) {
    if (round % 100 == 0) session->emplace(within(budget, "one who throws", 20));
    std::mt19937_64 random(round);
    const int at = static_cast<int>(random() % 14);
    Tensor x = at::ones({48, 64}).requires_grad_(true), mask;
    try {
      const Step step = (*session)->step();
      mask = at::bernoulli(x.detach(), 0.5);
      Tensor h = x * mask;
      const Tensor loss = h.sum();
      for (int i = 0; i < 10; ++i) {
        h = at::tanh(h);
        if (i == at && random() % 2) throw std::domain_error("the user's own");
        if (i == at) h.register_hook([](const Tensor&) -> Tensor { throw std::domain_error("the user's own"); });
      }
      (loss + h.sum() * 0.0).backward();
    } catch (const std::domain_error&) {
      return;
    }
    expect_gradient(x, mask, "one who throws");
  });
}

// Forks a child that exits, or trains a step before that. It draws from a generator of its own: a lock that another
// thread of the parent had is never free in the child.
std::unique_ptr<Guest> one_who_forks(Bytes budget) {
  const auto session = std::make_shared<Session>(within(budget, "one who forks", 20));
  return std::make_unique<Guest>(
      "one who forks",
      [=](std::uint64_t round) {
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child < 0) throw Error("[one who forks] cannot");
        if (child == 0) {
          int code = 0;
          if (round % 2 == 1) try {
              const Step step = session->step();
              const Tensor x = at::ones({32, 64}).requires_grad_(true);
              const Tensor mask = at::empty({32, 64}).bernoulli_(0.5, at::detail::createCPUGenerator(round));
              (x * mask).tanh().sum().backward();
            } catch (const std::exception& error) {
              code = is_refusal(error) ? 0 : 5;
            }
          std::exit(code);
        }
        int status = 0;
        for (int i = 0; i < 3000; ++i) {
          if (waitpid(child, &status, WNOHANG) == child) {
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
            throw Error("[one who forks] the child ended with status " + std::to_string(status));
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        throw Error(std::string("[one who forks] the child did not end; it ") + (round % 2 ? "trained" : "only exits"));
      },
      std::chrono::milliseconds(500));
}

// Lets an allocation of anybody fail, now and then.
std::unique_ptr<Guest> saboteur() {
  return std::make_unique<Guest>(
      "saboteur", [](std::uint64_t round) { meter::fail_after(static_cast<std::int64_t>(round * 7919 % 3000)); },
      std::chrono::milliseconds(100));
}

}  // namespace

std::vector<std::unique_ptr<Guest>> all_guests(Bytes budget) {
  std::vector<std::unique_ptr<Guest>> all;
  all.push_back(trainer(budget));
  all.push_back(second_trainer(budget));
  all.push_back(sampler());
  all.push_back(threads_that_come_and_go(budget));
  all.push_back(forward_here_and_backward_there(budget));
  all.push_back(one_who_throws(budget));
#ifndef REPRISE_SANITIZED  // they do not let children of programs with threads live
  all.push_back(one_who_forks(budget));
#endif
  all.push_back(saboteur());
  return all;
}

}  // namespace reprise::testing
