// What LD_PRELOAD names: looks whether this process is one with LibTorch, and only then loads the rest.
//
// The environment of a job reaches every process it starts, shells and compilers included. So this library needs
// nothing but the C library, and leaves processes without LibTorch alone.
#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/untouched.h"

namespace {

int is_libtorch(dl_phdr_info* object, std::size_t, void*) {
  const char* const slash = std::strrchr(object->dlpi_name, '/');
  return std::strncmp(slash ? slash + 1 : object->dlpi_name, "libtorch_cpu.so", 15) == 0 ? 1 : 0;
}

// libreprise_live.so, in the folder of this library.
bool beside_this_library(char (&path)[PATH_MAX]) {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&is_libtorch), &self) == 0) return false;
  const char* const slash = std::strrchr(self.dli_fname, '/');
  const int folder = slash ? static_cast<int>(slash - self.dli_fname) + 1 : 0;
  return std::snprintf(path, sizeof path, "%.*slibreprise_live.so", folder, self.dli_fname) <
         static_cast<int>(sizeof path);
}

[[gnu::constructor]] void begin() {
  if (dl_iterate_phdr(is_libtorch, nullptr) == 0) return;
  char path[PATH_MAX];
  void* const live = beside_this_library(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (void* const begin_live = live ? dlsym(live, "reprise_begin") : nullptr) {
    reinterpret_cast<void (*)()>(begin_live)();
    return;
  }
  const char* const reason = dlerror();
  reprise::untouched_or_not_at_all("this program's LibTorch is not one that this Reprise was built for",
                                   reason ? reason : "the path is too long");
}

}  // namespace
