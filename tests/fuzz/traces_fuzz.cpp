// A file that is read as a trace, or as a graph: refused, or sound, written and read again as it was, and shown.
#include "fuzz.h"
#include "reprise/report/inspection.h"
#include "reprise/trace/error.h"
#include "reprise/trace/files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise;
  try {
    const Trace trace = parse_trace({reinterpret_cast<const char*>(data), size});
    check(trace);
    fuzz::require(parse_trace(to_json(trace)) == trace, "a trace is written and read as it was");
    for (const char c : to_text(trace, inspect(trace))) {
      fuzz::require(c == '\n' || !(0 <= c && c < ' '), "a text has no control characters");
    }
  } catch (const BadInput&) {
  }
  return 0;
}
