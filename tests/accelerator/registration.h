// What makes the simulated accelerator known to LibTorch, part by part. `use` calls them all.
#pragma once

namespace reprise::testing::accelerator {

void register_allocator();
void register_pinned_memory();
void register_guard();
void register_fallback();
void register_operators();
void register_recurrent_cells();

}  // namespace reprise::testing::accelerator
