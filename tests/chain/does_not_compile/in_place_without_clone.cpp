// a forward closure that writes to a state needs copies
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
      2, [](int, Field&) {}, [](int, const Field&, Field gradient) { return gradient; });
}
