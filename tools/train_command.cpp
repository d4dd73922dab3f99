// reprise train.
#include <memory>

#include "command.h"
#include "libtorch_program.h"
#include "train_options.h"

namespace reprise::tools {

void add_train(CLI::App& app, Run& run) {
  const auto options = std::make_shared<TrainOptions>();
  add_train_command(app, options, [options, &run] {
    run = [options] {
      check_options(*options);
      return go_on_in_libtorch_program();
    };
  });
}

}  // namespace reprise::tools
