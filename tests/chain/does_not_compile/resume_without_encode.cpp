// a pass that is resumed is on disk
#include "field_without_copies.h"

int main() {
  (void)two_layers().resume();
}
