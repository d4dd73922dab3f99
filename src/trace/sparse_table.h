// A table by number, most of whose entries are empty most of the time.
//
// Memory is proportional to the entries that are not empty, not to the largest number: entries are in pages, and a page
// that has become empty is freed. A walk through all numbers with few entries at a time needs two pages.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::internal {

// T{} is empty.
template <class T>
class SparseTable {
 public:
  [[nodiscard]] const T& operator[](Id number) const {
    const auto [page, place] = position(number);
    return page < pages_.size() && pages_[page] ? pages_[page]->entries[place] : empty_;
  }

  void set(Id number, const T& entry) {
    change(number, [&](T& old) { old = entry; });
  }

  // Calls change(entry), which may write to it and must not use the table.
  template <class Change>
  void change(Id number, const Change& change) {
    const auto [at, place] = position(number);
    if (at >= pages_.size() || !pages_[at]) add_page(at);
    Page& page = *pages_[at];
    T& entry = page.entries[place];
    const bool was_empty = entry == T{};
    change(entry);
    const bool is_empty = entry == T{};
    if (was_empty == is_empty) {
      if (page.used > 0) return;
    } else {
      page.used += was_empty ? 1 : std::size_t(-1);
    }
    if (page.used == 0) spare_ = std::move(pages_[at]);
  }

  // Empties the entry of this number and writes `entry` to the number after it. Does nothing and returns false unless
  // the next entry is empty and in the same page.
  bool move_to_next(Id number, const T& entry) {
    const auto [at, place] = position(number);
    if (place + 1 == page_size || at >= pages_.size() || !pages_[at]) return false;
    auto& entries = pages_[at]->entries;
    if (!(entries[place + 1] == T{})) return false;
    entries[place] = T{};
    entries[place + 1] = entry;
    return true;
  }

  void clear() {
    for (std::unique_ptr<Page>& page : pages_) page.reset();
  }

  // Calls use(number, entry) for the entries that are not empty, ascending. `use` may change the table.
  template <class Use>
  void for_each(const Use& use) const {
    for (std::size_t page = 0; page < pages_.size(); ++page) {
      for (std::size_t place = 0; place < page_size && pages_[page]; ++place) {
        const T entry = pages_[page]->entries[place];
        if (!(entry == T{})) use(static_cast<Id>(page * page_size + place), entry);
      }
    }
  }

 private:
  static constexpr std::size_t page_size = 256;
  struct Page {
    std::array<T, page_size> entries{};
    std::size_t used = 0;  // entries that are not empty
  };

  [[nodiscard]] static std::pair<std::size_t, std::size_t> position(Id number) {
    const auto place = static_cast<std::size_t>(number);
    return {place / page_size, place % page_size};
  }
  [[gnu::noinline]] void add_page(std::size_t at) {  // seldom, so that `set` stays small
    if (at >= pages_.size()) pages_.resize(at + 1);
    pages_[at] = spare_ ? std::move(spare_) : std::make_unique<Page>();
  }

  static inline const T empty_{};
  std::vector<std::unique_ptr<Page>> pages_;
  std::unique_ptr<Page> spare_;  // empty
};

}  // namespace reprise::internal
