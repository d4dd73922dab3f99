// What makes the simulated accelerator known to LibTorch, part by part. `use` calls them all.
#pragma once

namespace reprise::testing::accelerator {

struct Like;

void register_allocator(const Like&);
void register_pinned_memory();
void register_guard();
void register_fallback(const Like&);
void register_operators(const Like&);
void register_recurrent_cells();

}  // namespace reprise::testing::accelerator
