// Finds room for labels beside marks in a picture.
#pragma once

#include <string>
#include <vector>

namespace reprise::benchmarks {

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};
// The area that both have.
[[nodiscard]] double overlap(const Box&, const Box&);

struct LabelPlace {
  double x = 0, y = 0;         // of the text's baseline
  std::string anchor;          // start, middle or end
  bool far_from_mark = false;  // wants a line from the mark to it
  Box box;
};

// Labels of one panel, placed one after the other, each where it covers least of what is there already.
class Labels {
 public:
  // They stay inside `panel`. `size` is that of the type.
  Labels(const Box& panel, double size) : panel_(panel), size_(size) {}

  // Something that should not be covered.
  void avoid(const Box& box) { taken_.push_back(box); }

  [[nodiscard]] LabelPlace place(double x, double y, const std::string& text);

 private:
  [[nodiscard]] LabelPlace candidate(double x, double y, double width, int direction, double distance) const;
  [[nodiscard]] double covered(const Box&) const;

  Box panel_;
  double size_;
  std::vector<Box> taken_;
};

}  // namespace reprise::benchmarks
