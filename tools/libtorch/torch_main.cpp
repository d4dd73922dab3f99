// The program behind those commands of `reprise` that need LibTorch. It is given the same command line.
#include <memory>

#include "dispatch.h"
#include "doctor_options.h"
#include "libtorch/doctor.h"
#include "libtorch/train.h"

namespace reprise::tools {

void add_train(CLI::App& app, Run& run) {
  const auto options = std::make_shared<TrainOptions>();
  add_train_command(app, options, [options, &run] { run = [options] { return train(*options); }; });
}

void add_doctor(CLI::App& app, Run& run) {
  const auto options = std::make_shared<DoctorOptions>();
  add_doctor_command(app, options, [options, &run] { run = [options] { return examine_libtorch(*options); }; });
}

}  // namespace reprise::tools

int main(int argc, char** argv) {
  return reprise::tools::dispatch(argc, argv, {reprise::tools::add_train, reprise::tools::add_doctor});
}
