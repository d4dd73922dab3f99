// the first argument cannot be called with the others
#include "reprise/torch/checkpoint.h"

int main() {
  reprise::checkpoint(7, 8);
}
