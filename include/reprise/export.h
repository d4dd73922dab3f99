// REPRISE_EXPORT marks the public names: a shared library of Reprise (BUILD_SHARED_LIBS) shows these, and hides its
// insides.
#pragma once

#define REPRISE_EXPORT [[gnu::visibility("default")]]
