// A program without LibTorch, or, linked to a library of that name, with another one.
#include <cstdio>

int main() {
  std::puts("ran");
  return 5;
}
