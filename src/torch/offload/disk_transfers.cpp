#include "torch/offload/disk_transfers.h"

#include <utility>

namespace reprise::internal {

// ---- one transfer --------------------------------------------------------------------------------------------------

c10::Storage DiskTransfer::give_up_fetched() {
  if (state != State::to_read && state != State::arrived) return {};
  state = State::there;
  return std::exchange(memory, c10::Storage());
}

std::span<const std::byte> DiskTransfer::bytes_in(const c10::Storage& memory) {
  return {static_cast<const std::byte*>(memory.data()), memory.nbytes()};
}

std::span<std::byte> DiskTransfer::bytes_to(const c10::Storage& memory) {
  return {static_cast<std::byte*>(memory.mutable_data()), memory.nbytes()};
}

// ---- all transfers -------------------------------------------------------------------------------------------------

std::shared_ptr<DiskTransfer> DiskTransfers::add(c10::Storage memory) {
  auto transfer = std::make_shared<DiskTransfer>();
  transfer->number = next_++;
  transfer->bytes = memory.nbytes();
  transfer->memory = std::move(memory);
  all_[transfer->number] = transfer;
  unwritten_.push_back(transfer);
  return transfer;
}

std::shared_ptr<DiskTransfer> DiskTransfers::find(const std::string& key) const {
  const auto found = all_.find(std::stoull(key));
  return found == all_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<DiskTransfer>> DiskTransfers::all() const {
  std::vector<std::shared_ptr<DiskTransfer>> transfers;
  transfers.reserve(all_.size());
  for (const auto& [number, transfer] : all_) transfers.push_back(transfer);
  return transfers;
}

std::shared_ptr<DiskTransfer> DiskTransfers::next_unwritten() {
  while (!unwritten_.empty() && !unwritten_.front()->unwritten()) unwritten_.pop_front();
  if (unwritten_.empty()) return nullptr;
  const bool another = unwritten_.size() > 1 && unwritten_[1]->state == DiskTransfer::State::to_write;
  return unwritten_[another && unwritten_[0]->state == DiskTransfer::State::writing ? 1 : 0];
}

void DiskTransfers::evict_written() {
  std::erase_if(unwritten_, [](const auto& transfer) { return !transfer->unwritten(); });
}

// References that other threads had to files would never end: they get empty ones to refer to.
Bytes DiskTransfers::settle_after_fork() {
  Bytes settled = 0;
  for (const auto& [number, transfer] : all_) {
    if (transfer->state == DiskTransfer::State::writing) transfer->state = DiskTransfer::State::to_write;
    if (transfer->state == DiskTransfer::State::reading) transfer->state = DiskTransfer::State::to_read;
    if (!transfer->file) continue;
    if (transfer->file.use_count() > 1) transfer->file = std::make_shared<ValueFile>(std::move(*transfer->file));
    settled += transfer->file->settle_after_fork();
  }
  return settled;
}

}  // namespace reprise::internal
