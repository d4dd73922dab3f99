// the chain remembers copies
#include "reprise/chain/loop.h"

struct Field {
  double numbers[4] = {};
};

template <>
struct reprise::StateTraits<Field> {
  static reprise::Bytes bytes(const Field&) { return sizeof(Field); }
};

int main() {
  reprise::Chain<Field> chain(
      2, [](int, const Field& x) { return x; }, [](int, const Field&, Field gradient) { return gradient; });
  reprise::ChainLoop loop(chain);
  (void)loop.forward(Field{});
}
