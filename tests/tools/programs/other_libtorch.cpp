// Has LibTorch's name and nothing else of it.
extern "C" int not_libtorch() {
  return 0;
}
