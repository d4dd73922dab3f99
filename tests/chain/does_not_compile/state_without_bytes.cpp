// a chain needs to know the bytes of its states
#include "reprise/chain/chain.h"

struct Field {
  std::vector<double> numbers;
};

int main() {
  reprise::Chain<Field> chain(
      2, [](int, const Field& x) { return x; }, [](int, const Field&, Field gradient) { return gradient; });
  (void)chain.forward(Field{});
}
