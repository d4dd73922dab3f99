#include "accelerator/device_memory.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "accelerator/accelerator.h"

namespace reprise::testing::accelerator {
namespace {

constexpr std::size_t bytes_of_device = std::size_t{unlimited};
constexpr std::size_t bytes_of_all = bytes_of_device * most_devices;

struct Mapping {
  int file = -1;
  char* device = nullptr;  // no access
  char* kernel = nullptr;

  Mapping() : file(memfd_create("accelerator", MFD_CLOEXEC)) {
    TORCH_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(bytes_of_all)) == 0, "[accelerator] no memory");
    device = map(PROT_NONE);
    kernel = map(PROT_READ | PROT_WRITE);
  }

 private:
  char* map(int rights) const {
    void* const at = mmap(nullptr, bytes_of_all, rights, MAP_SHARED | MAP_NORESERVE, file, 0);
    TORCH_CHECK(at != MAP_FAILED, "[accelerator] no addresses");
    return static_cast<char*>(at);
  }
};
const Mapping& mapping() {
  static const Mapping& made = *new Mapping;  // never destroyed: tensors outlive main
  return made;
}

}  // namespace

Addresses addresses_of(c10::DeviceIndex device) {
  char* const first = mapping().device + static_cast<std::size_t>(device) * bytes_of_device;
  return {first, first + bytes_of_device};
}

c10::DeviceIndex device_at(const void* address) {
  const auto* const at = static_cast<const char*>(address);
  if (at < mapping().device || at >= mapping().device + bytes_of_all) return -1;
  return static_cast<c10::DeviceIndex>(static_cast<std::size_t>(at - mapping().device) / bytes_of_device);
}

void drop_pages(char* at, std::size_t bytes) {
  const auto offset = at - mapping().device;
  const int result =
      fallocate(mapping().file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, static_cast<off_t>(bytes));
  TORCH_CHECK(result == 0, "[accelerator] pages cannot be given back");
}

void* kernel_address(const void* device_address) {
  if (device_address == nullptr) return nullptr;
  TORCH_CHECK(device_at(device_address) >= 0, "[accelerator] an address of the host");
  return mapping().kernel + (static_cast<const char*>(device_address) - mapping().device);
}

}  // namespace reprise::testing::accelerator
