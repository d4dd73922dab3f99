#include "store/ledger.h"

#include <algorithm>
#include <new>

namespace reprise::internal {

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    give_back();
    ledger_ = std::exchange(other.ledger_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    loose_ = other.loose_;
    held_ = std::exchange(other.held_, false);
  }
  return *this;
}

void Reservation::give_back() {
  if (ledger_) ledger_->change(bytes_, loose_ ? 1 : 0, held(bytes_));
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
  other.give_back();
}

void Reservation::hold() {
  if (ledger_ && !std::exchange(held_, true)) ledger_->hold(bytes_);
}

void Reservation::settle() {
  if (ledger_ && std::exchange(loose_, false)) ledger_->change(0, 1, 0);
}

void Reservation::loosen() {
  if (ledger_ && !std::exchange(loose_, true)) ledger_->change(0, -1, 0);
}

std::optional<Reservation> Ledger::try_reserve(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > budget_ - used_) return std::nullopt;
  used_ += bytes;
  ++loose_;
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

void Ledger::change(Bytes bytes, int loose, Bytes held) {
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
  held_ -= held;
  loose_ -= loose;
  ++version_.changes;
  changed_.notify_all();
}

bool Ledger::wait_past(const Version& since, bool own_hope) {
  std::unique_lock lock(mutex_);
  const auto changed = [&] {
    return version_.changes != since.changes || (own_hope && version_.touches != since.touches);
  };
  // Loose bytes that end are a change, so there is no need to look at them again.
  if (!changed() && loose_ == 0 && !own_hope) return false;
  changed_.wait(lock, changed);
  return true;
}

void Ledger::after_fork_in_child(Bytes settled) {
  used_ = held_ = settled;
  loose_ = 0;
  new (&changed_) std::condition_variable;  // not destroyed before: that would wait for those who waited on it
  mutex_.unlock();
}

}  // namespace reprise::internal
