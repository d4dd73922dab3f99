// Settings and numbers as Python writes them: dicts and texts.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/chain/form.h"
#include "reprise/chain/statistics.h"
#include "reprise/store/store.h"
#include "reprise/torch/session.h"
#include "reprise/trace/verify.h"

namespace reprise::python {

[[nodiscard]] ChainForm form_of(const pybind11::dict&);
[[nodiscard]] pybind11::dict dict_of(const ChainForm&);
[[nodiscard]] pybind11::dict dict_of(const ChainStatistics&);
[[nodiscard]] pybind11::dict dict_of(const StoreStatistics&);
[[nodiscard]] pybind11::dict dict_of(const Description&);

// None: no limit.

[[nodiscard]] Verify verify_of(const std::string& room, const std::string& name);
[[nodiscard]] std::string name_of(Verify);

}  // namespace reprise::python
