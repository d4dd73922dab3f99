// a pass that is resumed is on disk
#include "reprise/chain/chain.h"

struct Field {
  std::vector<double> numbers;
};

template <>
struct reprise::StateTraits<Field> {
  static reprise::Bytes bytes(const Field&) { return 8; }
};

int main() {
  reprise::Chain<Field> chain(
      2, [](int, const Field& x) { return x; }, [](int, const Field&, Field gradient) { return gradient; });
  (void)chain.resume();
}
