// Whether the code under test is sanitized, which makes everything several times slower.
#pragma once

namespace reprise::testing {

#ifdef REPRISE_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace reprise::testing
