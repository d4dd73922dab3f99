// a forward closure that writes to a state needs copies
#include "field_without_copies.h"

int main() {
  reprise::Chain<Field> chain(
      2, [](int, Field&) {}, [](int, const Field&, Field gradient) { return gradient; });
}
