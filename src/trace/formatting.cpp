// The compiled part of fmt: once here, and not again in every file that formats something, which took three seconds for
// each of them.
//
// Elsewhere <fmt/format.h> only declares these functions. Here they are inline functions, which the library hides, so
// that a program with an fmt of its own, of whatever version, keeps the two apart.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <tuple>

namespace reprise::internal {

// An inline function is compiled where it is used. These are what `fmt::format` and `fmt::print` call, and nothing else
// of fmt is used: other functions (`fmt::join`, `fmt::format_to`) would be compiled in every file again, and not link.
extern const std::tuple<std::string (*)(fmt::string_view, fmt::format_args),
                        void (*)(fmt::string_view, fmt::format_args),
                        void (*)(std::FILE*, fmt::string_view, fmt::format_args)>
    compiled_of_fmt;
constinit const decltype(compiled_of_fmt) compiled_of_fmt{fmt::vformat, fmt::vprint, fmt::vprint};

}  // namespace reprise::internal
