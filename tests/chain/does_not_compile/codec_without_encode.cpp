// codecs need to see states as arrays
#include "field_without_copies.h"

int main() {
  two_layers().codec(reprise::codec("half"));
}
