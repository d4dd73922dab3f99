// The `reprise` command.
#include "dispatch.h"
#include "libtorch_program.h"

int main(int argc, char** argv) {
  using namespace reprise::tools;
  with_arguments(argv);
  return dispatch(argc, argv,
                  {add_train, add_run, add_report, add_doctor, add_plan, add_simulate, add_curve, add_fit, add_inspect,
                   add_planners, add_example, add_completion});
}
