# What ./run, ./test and ./bench share: from whatever machine this is to a built target.
#
# Sourced with `set -euo pipefail`. Nothing here writes to stdout, which belongs to the command that is run in the end,
# and nothing changes the current directory, which file names on the command line refer to.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
highsbox_version=1.15.1

say() { printf 'reprise: %s\n' "$*" >&2; }

# ---- Debian packages -------------------------------------------------------------------------------------------------

missing=()  # packages
reasons=()  # by package: what it is for

# need PACKAGE REASON CHECK...: notes the package as missing unless the command CHECK... succeeds.
need() {
  if ! "${@:3}"; then
    missing+=("$1")
    reasons+=("$2")
  fi
}

has_command() {  # one of these
  local name
  for name; do
    if command -v "$name" >/dev/null; then return 0; fi
  done
  return 1
}

# Looking for the file itself takes no time, and finds what was installed by other means than apt-get, too.
has_header() {
  local prefixes prefix
  IFS=':;' read -ra prefixes <<<"/usr:/usr/local:${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    if [[ -n $prefix && -e $prefix/include/$1 ]]; then return 0; fi
  done
  return 1
}

need_for_building() {
  need g++ "the compiler" has_command "${CXX:-g++}"
  need cmake "the build system" has_command cmake
  need ninja-build "runs the compiler" has_command ninja make
  need libfmt-dev "formats numbers and messages" has_header fmt/format.h
  need nlohmann-json3-dev "JSON results, and the tests of them" has_header nlohmann/json.hpp
  need libcli11-dev "the command line of reprise" has_header CLI/CLI.hpp
}

need_for_testing() {
  need_for_building
  need libgtest-dev "GoogleTest, for the tests" has_header gtest/gtest.h
}

# Installs what is missing, or says how to and ends the script.
install_missing() {
  if ((${#missing[@]} == 0)); then return 0; fi
  local i
  if ((EUID != 0)) || ! has_command apt-get; then
    say "these packages are missing (names as in Debian):"
    for i in "${!missing[@]}"; do printf '  %-20s %s\n' "${missing[i]}" "${reasons[i]}" >&2; done
    say "only root can install them; type:  sudo apt-get install ${missing[*]}"
    exit 2
  fi
  for i in "${!missing[@]}"; do say "installing ${missing[i]}: ${reasons[i]}"; done
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq </dev/null >&2 || say "the list of packages could not be updated; trying with the old one"
  if ! apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >&2; then
    say "could not install: ${missing[*]}"
    exit 2
  fi
}

# ---- HiGHS -----------------------------------------------------------------------------------------------------------

highs=""  # libhighs.so; empty: none, or the one that REPRISE_HIGHS names at run time

find_highs() {
  local site
  for site in "$root"/.venv/lib/python3*/site-packages; do
    if [[ -e $site/highsbox-$highsbox_version.dist-info && -e $site/highsbox/highs_dist/lib/libhighs.so ]]; then
      highs=$site/highsbox/highs_dist/lib/libhighs.so
    fi
  done
  [[ -n $highs ]]
}

# A virtual environment without a pip of its own, filled by the machine's pip: needs no package python3-venv.
install_highs() {
  python3 -m venv --without-pip "$root/.venv" &&
    PIP_DEFAULT_TIMEOUT=${PIP_DEFAULT_TIMEOUT:-20} python3 -m pip --python "$root/.venv/bin/python" \
      install --retries 1 --only-binary :all: "highsbox==$highsbox_version"
}

# Never fails: planning works without HiGHS.
prepare_highs() {
  if [[ -n ${REPRISE_HIGHS:-} ]] || find_highs; then return 0; fi
  # Where it cannot be had, trying again every time would make every call slow: once a day.
  local failure=$root/build/highsbox.log
  if [[ -n $(find "$failure" -mtime -1 2>/dev/null) ]]; then return 0; fi
  say "installing highsbox $highsbox_version into .venv: HiGHS, the solver behind the lower bounds"
  if install_highs >"$failure.part" 2>&1 && find_highs; then
    rm "$failure.part"
  else
    mv "$failure.part" "$failure"
    say "HiGHS cannot be had (see build/highsbox.log): planning works, bounds are weaker"
  fi
}

# ---- building --------------------------------------------------------------------------------------------------------

# Ninja where there is one, but not against a choice that was made.
if [[ -z ${CMAKE_GENERATOR:-} ]] && has_command ninja; then export CMAKE_GENERATOR=Ninja; fi
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

# configure PRESET [OPTION...]: does nothing if the preset is configured with these options on. Later changes of a
# CMakeLists.txt are seen by the build itself.
configure() {
  local folder=$root/build/$1 line
  local cache=$folder/CMakeCache.txt stamp=$folder/configured settings=() outdated=0
  for line in "${@:2}"; do settings+=("$line:BOOL=ON"); done
  if [[ -n $highs ]]; then settings+=("REPRISE_HIGHS_LIBRARY:FILEPATH=$highs"); fi
  for line in "${settings[@]}"; do
    grep -qsxF -- "$line" "$cache" || outdated=1
  done
  if ((outdated == 0)) && [[ $stamp -nt $root/CMakePresets.json ]]; then return 0; fi
  # What is not asked for is not built, so that ./run does not need GoogleTest.
  grep -qs '^REPRISE_TESTS:' "$cache" || settings=(REPRISE_TESTS:BOOL=OFF "${settings[@]}")
  cmake -S "$root" --preset "$1" --log-level=NOTICE "${settings[@]/#/-D}" >"$folder.log" 2>&1 || {
    cat "$folder.log" >&2
    return 1
  }
  touch "$stamp"
}

# compile PRESET TARGET: one line for each file, nothing if there is nothing to do.
compile() {
  cmake --build "$root/build/$1" --target "$2" 2>&1 | sed -uE \
    -e '/^ninja: no work to do|Re-checking globbed|Built target|[Cc]onsolidate compiler|^ninja: Entering/d' \
    -e 's#Building CXX object (.*)CMakeFiles/[^/]*\.dir/(.*)\.o$#\1\2#' \
    -e 's#Linking CXX (executable|static library|shared library) #link #' >&2
}

# make_ready PRESET TARGET [OPTION...]: HiGHS, configuring and building, for one script at a time.
make_ready() {
  mkdir -p "$root/build"
  (
    flock -n 9 || { say "waiting for another build to end"; flock 9; }
    prepare_highs
    configure "$1" "${@:3}" && compile "$1" "$2"
  ) 9>"$root/build/lock"
}
