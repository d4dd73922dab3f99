// a disk needs to see states as arrays
#include "field_without_copies.h"

int main() {
  two_layers().disk({.folder = "/tmp"});
}
