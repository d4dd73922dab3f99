// The measurement of ./bench compare: all sides of a model in turn, again and again.
#pragma once

#include <string>

#include "compare_results.h"
#include "compare_settings.h"

namespace reprise::benchmarks {

class PythonPeers;

// `python`: nullptr if there is none; its rivals are then named as not measured, with `no_python` as the reason.
[[nodiscard]] ModelResult measure(const std::string& model, const CompareSettings&, PythonPeers* python,
                                  const std::string& no_python);

}  // namespace reprise::benchmarks
