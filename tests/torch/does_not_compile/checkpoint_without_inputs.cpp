// needs at least one input
#include "reprise/torch/checkpoint.h"

int main() {
  reprise::checkpoint([] { return 1; });
}
