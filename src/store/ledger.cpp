#include "store/ledger.h"

#include <algorithm>
#include <new>

namespace reprise::internal {

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    free();
    ledger_ = std::exchange(other.ledger_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    in_transit_ = other.in_transit_;
    held_ = std::exchange(other.held_, false);
  }
  return *this;
}

void Reservation::free() {
  if (ledger_) ledger_->change(bytes_, in_transit_ ? 1 : 0, held(bytes_));
  ledger_ = nullptr;
  bytes_ = 0;
  held_ = false;
}

void Reservation::shrink(Bytes bytes) {
  if (bytes >= bytes_) return;
  ledger_->change(bytes_ - bytes, 0, held(bytes_ - bytes));
  bytes_ = bytes;
}

void Reservation::absorb(Reservation&& other) {
  if (std::exchange(other.held_, false)) ledger_->change(0, 0, other.bytes_);
  bytes_ += std::exchange(other.bytes_, 0);
  other.free();
}

void Reservation::hold() {
  if (ledger_ && !std::exchange(held_, true)) ledger_->hold(bytes_);
}

void Reservation::mark_at_rest() {
  if (ledger_ && std::exchange(in_transit_, false)) ledger_->change(0, 1, 0);
}

void Reservation::mark_in_transit() {
  if (ledger_ && !std::exchange(in_transit_, true)) ledger_->change(0, -1, 0);
}

std::optional<Reservation> Ledger::try_reserve(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > budget_ - used_) return std::nullopt;
  used_ += bytes;
  ++in_transit_;
  return Reservation(*this, bytes);
}

bool Ledger::fits(Bytes bytes) const {
  const std::lock_guard lock(mutex_);
  return bytes <= budget_ - used_;
}

Bytes Ledger::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

Bytes Ledger::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

Bytes Ledger::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void Ledger::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = held_;
}

Ledger::Version Ledger::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

// Notifying with the lock held: once it is free, a waiting thread may go on to destroy the ledger.
void Ledger::touch() {
  const std::lock_guard lock(mutex_);
  ++version_.touches;
  changed_.notify_all();
}

void Ledger::hold(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  held_ += bytes;
  peak_ = std::max(peak_, held_);
}

void Ledger::change(Bytes bytes, int in_transit, Bytes held) {
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
  held_ -= held;
  in_transit_ -= in_transit;
  ++version_.changes;
  changed_.notify_all();
}

bool Ledger::wait_past(const Version& since, bool for_touch) {
  std::unique_lock lock(mutex_);
  const auto changed = [&] {
    return version_.changes != since.changes || (for_touch && version_.touches != since.touches);
  };
  // Bytes whose transit ends are a change, so `in_transit_` need not be read again.
  if (!changed() && in_transit_ == 0 && !for_touch) return false;
  changed_.wait(lock, changed);
  return true;
}

void Ledger::after_fork_in_child(Bytes at_rest) {
  used_ = held_ = at_rest;
  in_transit_ = 0;
  // Not destroyed before: its destructor would wait for threads that are not here.
  new (&changed_) std::condition_variable;
  mutex_.unlock();
}

}  // namespace reprise::internal
