// is given away as a copy
#include "field_without_copies.h"

int main() {
  (void)two_layers().state(0);
}
