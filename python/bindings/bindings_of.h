// The parts of the module reprise._core. Each adds what it is named after; module.cpp calls them in this order.
#pragma once

#include <pybind11/pybind11.h>

namespace reprise::python {

// Errors of Reprise become exceptions of Python, wherever they are thrown.
void add_errors(pybind11::module_&);
// Traces, plans and curves: what needs no torch.
void add_plans(pybind11::module_&);
// Chains of closures, their schedules, and stores of arrays: neither do they need it.
void add_schedules(pybind11::module_&);
void add_chains(pybind11::module_&);
void add_stores(pybind11::module_&);
// The engine in front of torch's, and the rule that nobody waits for a lock of ours with the interpreter's in hand.
void add_engine(pybind11::module_&);
// Sessions and their steps.
void add_sessions(pybind11::module_&);
// Steps that are found in programs that do not know of Reprise.
void add_found_steps(pybind11::module_&);
// Regions that evict what autograd saves in them.
void add_regions(pybind11::module_&);
// What torch.compile makes, as one operator.
void add_compiled_code(pybind11::module_&);

// Throws the error of Reprise's that this exception was made of, if it is one with facts; else returns.
void rethrow_own_error(pybind11::error_already_set&);

}  // namespace reprise::python
