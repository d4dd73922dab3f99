// the chain remembers copies
#include "field_without_copies.h"
#include "reprise/chain/loop.h"

int main() {
  auto chain = two_layers();
  reprise::ChainLoop loop(chain);
  (void)loop.forward(Field{});
}
