# What ./run, ./test and ./bench share: from whatever machine this is to a built target.
#
# Sourced with `set -euo pipefail`. Nothing here writes to stdout, which belongs to the command that is run in the end,
# and nothing changes the current directory, which file names on the command line refer to.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
highsbox_version=1.15.1
matplotlib_version=3.11.2
torch_version=2.13.0
newest_torch_version=2.15.0
clang_format_version=14.0.6  # as Debian has it; others format the same style in other ways
clang_tidy_version=18.1.8

say() { printf 'reprise: %s\n' "$*" >&2; }

# ---- Debian packages -------------------------------------------------------------------------------------------------

missing=()  # packages
reasons=()  # by package: what it is for
wished=()   # packages without which something is skipped

# need PACKAGE REASON CHECK...: notes the package as missing unless the command CHECK... succeeds.
need() {
  if ! "${@:3}"; then
    missing+=("$1")
    reasons+=("$2")
  fi
}

# wish PACKAGE REASON CHECK...: likewise, for what is not indispensable: installed if that can be done, and else left.
wish() {
  if ((EUID == 0)) && has_command apt-get && ! "${@:3}"; then
    say "installing $1: $2"
    wished+=("$1")
  fi
}

has_command() {  # one of these
  local name
  for name; do
    if command -v "$name" >/dev/null; then return 0; fi
  done
  return 1
}

# in_prefixes FILE [FOLDER...]: the first of these folders, or of those CMake looks into, that has the file.
in_prefixes() {
  local prefixes prefix
  IFS=':;' read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${@:2}" "${prefixes[@]}"; do
    if [[ -n $prefix && -e $prefix/$1 ]]; then
      printf '%s\n' "$prefix"
      return 0
    fi
  done
  return 1
}

has_petsc() { compgen -G '/usr/lib/petscdir/petsc*/*/lib/pkgconfig/PETSc.pc' >/dev/null; }

# Looking for the file itself takes no time, and finds what was installed by other means than apt-get, too.
has_header() { in_prefixes "include/$1" /usr /usr/local >/dev/null; }

need_for_building() {
  need g++ "the compiler" has_command "${CXX:-g++}"
  need cmake "the build system" has_command cmake
  need ninja-build "runs the compiler" has_command ninja make
  need libfmt-dev "formats numbers and messages" has_header fmt/format.h
  need nlohmann-json3-dev "JSON results, and the tests of them" has_header nlohmann/json.hpp
  need libcli11-dev "the command line of reprise" has_header CLI/CLI.hpp
  need libxxhash-dev "fingerprints of values" has_header xxhash.h
  need libzstd-dev "compresses stored values" has_header zstd.h
}

need_for_testing() {
  need_for_building
  need libgtest-dev "GoogleTest, for the tests" has_header gtest/gtest.h
  wish ccache "what was compiled once is not compiled again" has_command ccache
  wish chromium "a real browser, for the tests of the report" has_command chromium
  wish openmpi-bin "starts the example that trains on two ranks" has_command mpirun
  wish libopenmpi-dev "MPI, for that example and two others" has_command mpicxx
  wish libpetsc-real-dev "PETSc, for the example of a solver's adjoint" has_petsc
  wish pkg-config "one of the ways to use Reprise that are tested" has_command pkg-config
  wish dpkg-dev "says what the Debian package depends on" has_command dpkg-shlibdeps
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null >&2; }

# Installs what is missing, or says how to and ends the script.
install_missing() {
  local i
  if ((${#wished[@]} > 0)); then
    apt_get update -qq || true
    apt_get install -y -qq --no-install-recommends "${wished[@]}" || say "could not install: ${wished[*]}; going on without"
  fi
  if ((${#missing[@]} == 0)); then return 0; fi
  if ((EUID != 0)) || ! has_command apt-get; then
    say "these packages are missing (names as in Debian):"
    for i in "${!missing[@]}"; do printf '  %-20s %s\n' "${missing[i]}" "${reasons[i]}" >&2; done
    say "only root can install them; type:  sudo apt-get install ${missing[*]}"
    exit 2
  fi
  for i in "${!missing[@]}"; do say "installing ${missing[i]}: ${reasons[i]}"; done
  apt_get update -qq || say "the list of packages could not be updated; trying with the old one"
  if ! apt_get install -y -qq --no-install-recommends "${missing[@]}"; then
    say "could not install: ${missing[*]}"
    exit 2
  fi
}

# ---- Python packages, for the libraries in them ----------------------------------------------------------------------

# into_environment FOLDER ARGUMENT...: pip install into a virtual environment. It has no pip of its own but is filled by the
# machine's, which needs no package python3-venv. Given up after pip_seconds, if they are set.
into_environment() {
  if [[ ! -e $1/bin/python ]]; then python3 -m venv --without-pip "$1" || return; fi
  PIP_DEFAULT_TIMEOUT=${PIP_DEFAULT_TIMEOUT:-20} timeout "${pip_seconds:-0}" python3 -m pip --python "$1/bin/python" \
    install --retries 1 --only-binary :all: "${@:2}"
}

# into_venv ARGUMENT...: likewise into the one of this project.
into_venv() { into_environment "$root/.venv" "$@"; }

# install_into_venv NAME COMMAND...: runs the command and keeps what it said in build/NAME.log if it fails. Where
# something cannot be had, trying again every time would make every call slow: once a day.
install_into_venv() {
  local failure=$root/build/$1.log
  if "${@:2}" >"$failure.part" 2>&1; then
    rm -f "$failure.part" "$failure"
  else
    mv "$failure.part" "$failure"
    return 1
  fi
}
failed_today() { [[ -n $(find "$root/build/$1.log" -mtime -1 2>/dev/null) ]]; }

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

install_highs() { into_venv "highsbox==$highsbox_version" && find_highs; }

# Never fails: planning works without HiGHS.
prepare_highs() {
  if [[ -n ${REPRISE_HIGHS:-} ]] || find_highs || failed_today highsbox; then return 0; fi
  say "installing highsbox $highsbox_version into .venv: HiGHS, the solver behind the lower bounds"
  install_into_venv highsbox install_highs ||
    say "HiGHS cannot be had (see build/highsbox.log): planning works, bounds are weaker"
}

# ---- matplotlib ------------------------------------------------------------------------------------------------------

has_matplotlib() { compgen -G "$root/.venv/lib/python3*/site-packages/matplotlib-$matplotlib_version.dist-info" >/dev/null; }

install_matplotlib() { into_venv "matplotlib==$matplotlib_version" && has_matplotlib; }

# Never fails: the page of ./bench compare has its tables without.
prepare_matplotlib() {
  if has_matplotlib || failed_today matplotlib; then return 0; fi
  say "installing matplotlib $matplotlib_version into .venv: draws the picture of ./bench compare"
  install_into_venv matplotlib install_matplotlib ||
    say "matplotlib cannot be had (see build/matplotlib.log): the page gets no new picture"
}

# ---- LibTorch --------------------------------------------------------------------------------------------------------

torch=""  # the folder that has LibTorch's include, lib and share/cmake; empty: none

# In this order: a LibTorch that CMake would find, the torch package of python3 (without importing it, which is slow),
# the one in .venv.
find_torch() {
  local package
  package=$(python3 -c 'if True:
    import importlib.util as util
    spec = util.find_spec("torch")
    print(spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else "")' 2>/dev/null) || package=""
  torch=$(in_prefixes share/cmake/Torch/TorchConfig.cmake) ||
    torch=$(in_prefixes share/cmake/Torch/TorchConfig.cmake "$package" "$root"/.venv/lib/python3*/site-packages/torch) ||
    torch=""
  [[ -n $torch ]]
}

version_of_torch() {
  local folder=$torch/include/torch
  cat "$folder/headeronly/version.h" "$folder/csrc/api/include/torch/version.h" 2>/dev/null |
    sed -nE 's/^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+).*/\2/p' | paste -sd. || true  # one of the two
}

# The library is in the package itself. The packages it depends on are for Python, except where it was built for CUDA.
install_torch() {
  into_venv --no-deps "torch==$torch_version" && find_torch || return
  if ldd "$torch/lib/libtorch_cpu.so" | grep -q 'not found'; then into_venv "torch==$torch_version"; fi
}

# Fails if there is no LibTorch and none can be had. Everything else is built and works without.
prepare_torch() {
  if find_torch; then
    local version
    version=$(version_of_torch)
    if [[ $version != "$torch_version" ]] && ! grep -qsF "\"version\": \"$version\"" "$root/docs/versions.json"; then
      say "LibTorch in $torch is version ${version:-unknown}, which was not tried: docs/versions.md has those that were"
    fi
    return 0
  fi
  if failed_today torch; then return 1; fi
  say "installing torch $torch_version into .venv: LibTorch, which Reprise trains with (200 MB and more to download)"
  install_into_venv torch install_torch
}

# ---- another LibTorch than that, for ./test --libtorch ---------------------------------------------------------------

# install_chosen_torch VERSION FOLDER: into an environment of its own, and nothing but the library. One that was built for
# CUDA, as most are, does not load without a few small packages of CUDA's, whether it is used or not.
install_chosen_torch() {
  into_environment "$2" --no-deps --no-compile "torch==$1" || return
  local library lacking needed
  library=$(echo "$2"/lib/python3*/site-packages/torch/lib/libtorch_cpu.so)
  mapfile -t lacking < <(ldd "$library" | awk '/not found/ {print $1}')
  if ((${#lacking[@]} > 0)); then
    mapfile -t needed < <(python3 "$root/scripts/cuda_packages.py" "${library%/torch/lib/*}" "${lacking[@]}")
    into_environment "$2" "${needed[@]}" || return
    if ldd "$library" | grep 'not found'; then return 1; fi
  fi
  touch "$2/complete"
}

environment_of_torch() { printf '%s\n' "$root/build/environments/libtorch-$1"; }

# find_chosen_torch VERSION|FOLDER: as `torch`, what is in the folder or what was installed.
find_chosen_torch() {
  local home
  home=$(environment_of_torch "$1")
  torch=$1
  if [[ -e $home/complete ]]; then torch=$(echo "$home"/lib/python3*/site-packages/torch); fi
  [[ -e $torch/share/cmake/Torch/TorchConfig.cmake ]] && torch=$(cd "$torch" && pwd)
}

prepare_chosen_torch() {
  local home
  home=$(environment_of_torch "$1")
  if find_chosen_torch "$1"; then return 0; fi
  if [[ ! $1 =~ ^[0-9]+([.][0-9]+)+$ ]]; then
    say "$1 is neither a version nor a folder with share/cmake/Torch/TorchConfig.cmake in it"
    return 1
  fi
  if failed_today "libtorch-$1"; then return 1; fi
  say "installing torch $1 into ${home#"$root"/}: nothing but LibTorch (500 to 900 MB to download if it is built for CUDA)"
  rm -rf "$home"
  mkdir -p "${home%/*}"
  install_into_venv "libtorch-$1" install_chosen_torch "$1" "$home"
}

# Whether there is that LibTorch, as `torch`, after installing it if it is a version.
has_chosen_torch() { one_at_a_time prepare_chosen_torch "$1" && find_chosen_torch "$1"; }

# ---- the Python package --------------------------------------------------------------------------------------------

# Where it is installed to be run and tested: an environment of its own, which sees the torch that was found and has what
# torch imports, and what builds and tests the package.
python_home=$root/build/python
python_packages=(numpy==2.4.6 typing_extensions==4.16.0 sympy==1.14.0 networkx==3.6.1 jinja2==3.1.6 fsspec==2026.9.0
  filelock==4.2.10 scikit-build-core==1.1.1 pytest==9.2.0 mypy==2.4.1)
python_wishes=(transformers==5.22.2 accelerate==1.15.0 lightning==2.6.6)  # whose training loops are tried; else these tests are skipped

# in_python_home ARGUMENT...: pip install into it.
in_python_home() {
  PIP_DEFAULT_TIMEOUT=${PIP_DEFAULT_TIMEOUT:-20} python3 -m pip --python "$python_home/bin/python" install --retries 1 "$@"
}

make_python_home() {
  local stamp=$python_home/packages
  local wanted="$torch ${python_packages[*]} ${python_wishes[*]}"
  if [[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]]; then
    rm -rf "$python_home"
    python3 -m venv --without-pip "$python_home" || return
    dirname "$torch" >"$(echo "$python_home"/lib/python3*/site-packages)/torch.pth"
    in_python_home --only-binary :all: "${python_packages[@]}" || return
    "$python_home/bin/python" -c 'import torch' || return
    in_python_home --only-binary :all: "${python_wishes[@]}" || true
    printf '%s' "$wanted" >"$stamp"
  fi
}

# Fails if it cannot be had: then there is no torch for Python, or a package is missing.
prepare_python_home() {
  if failed_today python; then return 1; fi
  if [[ ! -e $python_home/packages ]]; then say "installing ${python_packages[*]} ${python_wishes[*]} into build/python: for the Python package"; fi
  install_into_venv python make_python_home
}

# install_python_package PRESET: builds the source distribution, of that and the libraries of the preset, which are there,
# the wheel, and installs that.
install_python_package() {
  local wheels=$root/build/wheel
  rm -rf "$wheels"
  (
    cd "$root" &&
      "$python_home/bin/python" -c 'import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])' "$wheels" &&
      python3 -m pip --python "$python_home/bin/python" wheel "$wheels"/*.tar.gz --no-build-isolation --no-deps --wheel-dir "$wheels" \
        -C "build-dir=$root/build/$1_python" -C "cmake.define.REPRISE_BUILT=$root/build/$1" \
        -C "cmake.define.REPRISE_HIGHS_LIBRARY=$highs" &&
      in_python_home --no-deps --force-reinstall "$wheels"/*.whl
  ) >"$root/build/wheel.log" 2>&1 || {
    cat "$root/build/wheel.log" >&2
    return 1
  }
}

# ---- what looks at the sources ---------------------------------------------------------------------------------------

# find_tool NAME VERSION: the first of the machine's own and the one in .venv that has this version, as `tool`.
find_tool() {
  local name major=${2%%.*}
  for name in "$1-$major" "$1" "$root/.venv/bin/$1"; do
    if "$name" --version 2>/dev/null | grep -q "version $major[.]"; then
      tool=$name
      return 0
    fi
  done
  return 1
}

# install_tool NAME VERSION
install_tool() {
  if failed_today "$1"; then return 1; fi
  say "installing $1 $2 into .venv"
  install_into_venv "$1" into_venv --no-deps "$1==$2"
}

# has_tool NAME VERSION: whether there is one, after installing it if there is none.
has_tool() { find_tool "$@" || { one_at_a_time install_tool "$@" && find_tool "$@"; }; }

# ---- building --------------------------------------------------------------------------------------------------------

# Ninja where there is one, but not against a choice that was made.
if [[ -z ${CMAKE_GENERATOR:-} ]] && has_command ninja; then export CMAKE_GENERATOR=Ninja; fi
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
# What ccache knows from one checkout is good for another one in another folder.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

# configure PRESET [OPTION...]: does nothing if the preset is configured with these options on. Later changes of a
# CMakeLists.txt are seen by the build itself. libtorch-VERSION is the preset release in a folder of its own.
configure() {
  local folder=$root/build/$1 line
  local cache=$folder/CMakeCache.txt stamp=$folder/configured settings=() outdated=0
  for line in "${@:2}"; do settings+=("$line:BOOL=ON"); done
  if [[ " ${*:2} " == *" REPRISE_TORCH "* ]]; then
    settings+=("Torch_DIR:PATH=$torch/share/cmake/Torch")
  elif grep -qsx REPRISE_TORCH:BOOL=ON "$cache" && [[ ! -e $(sed -n 's/^Torch_DIR:PATH=//p' "$cache") ]]; then
    settings+=(REPRISE_TORCH:BOOL=OFF)  # it is gone
  fi
  if [[ -n $highs ]]; then settings+=("REPRISE_HIGHS_LIBRARY:FILEPATH=$highs"); fi
  for line in "${settings[@]}"; do
    grep -qsxF -- "$line" "$cache" || outdated=1
  done
  if ((outdated == 0)) && [[ $stamp -nt $root/CMakePresets.json ]]; then return 0; fi
  # What is not asked for is not built, so that ./run needs neither GoogleTest nor LibTorch.
  for line in REPRISE_TESTS REPRISE_TORCH; do
    grep -qs "^$line:" "$cache" || settings=("$line:BOOL=OFF" "${settings[@]}")
  done
  mkdir -p "$folder"  # the log is in it: build/NAME.log says what could not be installed, also for libtorch-VERSION
  cmake -S "$root" -B "$folder" --preset "${1/#libtorch-*/release}" --log-level=NOTICE "${settings[@]/#/-D}" >"$folder/configure.log" 2>&1 || {
    cat "$folder/configure.log" >&2
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

# one_at_a_time COMMAND...: in a shell of its own, and in no other script at the same time.
one_at_a_time() {
  mkdir -p "$root/build"
  (
    flock -n 9 || { say "waiting for another build to end"; flock 9; }
    "$@"
  ) 9>"$root/build/lock"
}

highs_configure_compile() {
  prepare_highs
  configure "$1" "${@:3}" && compile "$1" "$2"
}

# make_ready PRESET TARGET [OPTION...]: HiGHS, configuring and building. With REPRISE_TORCH, after has_torch.
make_ready() { one_at_a_time highs_configure_compile "$@"; }

# Whether there is LibTorch, after installing it if there is none.
has_torch() { one_at_a_time prepare_torch && find_torch; }

# The Python package, built and installed into its environment.
make_python_ready() {
  if ! has_torch || ! one_at_a_time prepare_python_home; then
    say "torch, or what the Python package needs beside it, cannot be had: see build/torch.log and build/python.log"
    return 1
  fi
  make_ready release reprise_tools REPRISE_TORCH && one_at_a_time install_python_package release  # it has the command inside
}
