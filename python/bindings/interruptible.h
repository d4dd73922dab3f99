// Work that Ctrl-C ends.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

namespace reprise::python {

// Runs the work on a thread of its own, so that Ctrl-C is heard: then `cancel` is called, and the work ends soon.
template <class Work, class Cancel>
auto interruptible(const Work& work, const Cancel& cancel) {
  std::atomic<bool> done{false};
  std::optional<decltype(work())> result;
  std::exception_ptr error;
  std::thread thread([&] {
    try {
      result.emplace(work());
    } catch (...) {
      error = std::current_exception();
    }
    done = true;
  });
  bool interrupted = false;
  while (!done) {
    {
      const pybind11::gil_scoped_release no_interpreter;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (!interrupted && PyErr_CheckSignals() != 0) {
      interrupted = true;
      cancel();
    }
  }
  thread.join();
  if (interrupted) throw pybind11::error_already_set();
  if (error) std::rethrow_exception(error);
  return std::move(*result);
}

}  // namespace reprise::python
