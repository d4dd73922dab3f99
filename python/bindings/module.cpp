// The module reprise._core: the C++ library as the package `reprise` uses it. What people call is in python/reprise.
#include "bindings_of.h"

PYBIND11_MODULE(_core, module) {
  using namespace reprise::python;
  module.doc() = "The C++ library behind the package reprise. Nothing here is for direct use.";
  add_errors(module);
  add_plans(module);
  add_schedules(module);
  add_chains(module);
  add_stores(module);
  add_engine(module);
  add_sessions(module);
  add_found_steps(module);
  add_regions(module);
  add_compiled_code(module);
}
