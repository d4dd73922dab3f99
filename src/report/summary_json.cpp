#include <nlohmann/json.hpp>

#include "report/dump_json.h"
#include "reprise/report/summary.h"

namespace reprise {
using namespace internal;
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& number) {
  return number ? Json(*number) : Json(nullptr);
}

}  // namespace

std::string json_line(const Summary& summary) {
  Json divergences = Json::array(), notes = Json::array(), kept = Json::array();
  for (const Divergence& divergence : summary.last_divergences) {
    divergences.push_back({{"step", divergence.step}, {"why", divergence.why}});
  }
  for (const Note& note : summary.last_notes) notes.push_back({{"step", note.step}, {"what", note.what}});
  for (const KeptOperator& op : summary.kept) {
    kept.push_back({{"op", op.op}, {"why", op.why}, {"values", op.values}, {"bytes", op.bytes}});
  }
  Json devices = Json::array();
  for (const DeviceSummary& device : summary.devices) {
    devices.push_back({{"device", device.device},
                       {"budget_bytes", or_null(device.budget)},
                       {"live_bytes", device.live},
                       {"peak_last_step_bytes", device.peak_last_step},
                       {"peak_bytes", device.peak},
                       {"evicted_last_step_bytes", device.evicted_last_step}});
  }
  const DeviceSummary& first = summary.devices.front();
  const Json json = {{"name", summary.name},
                     {"steps", summary.steps},
                     {"budget_bytes", or_null(first.budget)},
                     {"device", first.device},
                     {"devices", std::move(devices)},
                     {"live_bytes", first.live},
                     {"peak_last_step_bytes", first.peak_last_step},
                     {"peak_bytes", first.peak},
                     {"peak_if_kept_bytes", or_null(summary.peak_if_kept)},
                     {"evicted_last_step_bytes", summary.evicted_last_step()},
                     {"packed_last_step_bytes", summary.packed_last_step},
                     {"packed_to_last_step_bytes", summary.packed_to_last_step},
                     {"disk_put_last_step_bytes", summary.disk_put_last_step},
                     {"disk_got_last_step_bytes", summary.disk_got_last_step},
                     {"host_put_last_step_bytes", summary.host_put_last_step},
                     {"host_got_last_step_bytes", summary.host_got_last_step},
                     {"host_peak_bytes", summary.host_peak},
                     {"other_devices_bytes", summary.other_devices},
                     {"before_meter_bytes", summary.before_meter},
                     {"resident_bytes", summary.resident},
                     {"replays", summary.replays},
                     {"replays_beside_plan", summary.replays_beside_plan},
                     {"replay_seconds", summary.replay_seconds},
                     {"pack_seconds", summary.pack_seconds},
                     {"disk_seconds", summary.disk_seconds},
                     {"disk_wait_seconds", summary.disk_wait_seconds},
                     {"step_seconds", summary.step_seconds},
                     {"overhead", summary.overhead()},
                     {"traces", summary.traces},
                     {"plans", summary.plans},
                     {"planning", summary.planning},
                     {"planning_seconds", summary.planning_seconds},
                     {"planning_saved_seconds", summary.planning_saved_seconds},
                     {"followed_plan", summary.followed_plan},
                     {"promised_peak_bytes", or_null(summary.promised_peak)},
                     {"promised_overhead", or_null(summary.promised_overhead)},
                     {"gap", or_null(summary.gap)},
                     {"smallest_feasible_bytes", or_null(summary.smallest_feasible)},
                     {"divergences", summary.divergences},
                     {"last_divergences", std::move(divergences)},
                     {"notes", summary.notes},
                     {"last_notes", std::move(notes)},
                     {"disk_failures", summary.disk_failures},
                     {"last_disk_failure", summary.last_disk_failure},
                     {"verified", summary.verified},
                     {"kept", std::move(kept)}};
  return dump_json(json);
}

}  // namespace reprise
