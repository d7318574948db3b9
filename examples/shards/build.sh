#!/bin/bash
# Builds the example shards from source/. Usage: build.sh [OUT], by default the folder of this
# script. Needs Debian's clang-19 and lld-19 (19.1.7) and no ROCm. The result has the same bytes
# wherever and whenever it is built; only the compressed bundle in libexblas also depends on the
# libzstd that clang uses (1.5.4 for the committed files). tests/tree/examples.rs compares.
set -euo pipefail
export LC_ALL=C
umask 022
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "${1:-$here}" && cd "${1:-$here}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here/source" # relative source names: no path of this machine in any file

# -Qn keeps the compiler's full version, which names the Debian release, out of the files.
common=(-O2 -Qn -Wall -Werror -Wno-unused-command-line-argument -fno-asynchronous-unwind-tables)
link=(-fuse-ld=lld-19 -nostdlib -Wl,--build-id=sha1 -Wl,-z,relro -L"$work/link")
clang() { clang-19 "${common[@]}" "$@"; }

# Empty libraries to link with: one with the version node of the real HIP runtime.
link_stubs() {
  mkdir -p "$work/link"
  echo 'void __hipRegisterFatBinary(void){} void __hipUnregisterFatBinary(void){} void __hipRegisterFunction(void){}
    void __hipPushCallConfiguration(void){} void __hipPopCallConfiguration(void){} void hipLaunchKernel(void){}
    void hipGetLastError(void){}' >"$work/hip.c"
  echo 'hip_4.2 { *; };' >"$work/hip.map"
  clang -w -shared -fPIC "${link[@]}" -Wl,-soname,libamdhip64.so.7,--version-script="$work/hip.map" \
    "$work/hip.c" -o "$work/link/libamdhip64.so"
}

# hip SHARD UNIT ARCHS OPTION...: compiles source/UNIT.hip (or $code.hip) to an object with a bundle.
hip() {
  local shard=$1 unit=$2 archs=$3 arch
  shift 3
  local offload=()
  for arch in $archs; do offload+=(--offload-arch="$arch"); done
  clang -x hip -std=c++17 -nogpuinc -nogpulib -cuid="$unit" -fPIC \
    -DSHARD="\"$shard\"" -DUNIT="\"$unit\"" "${offload[@]}" "$@" -c "${code:-$unit}.hip" -o "$work/$unit.o"
}

start() { # with -DPROGRAM: for a program
  clang -c "$@" start.S -o "$work/start.o"
}

library() { # library FILE SONAME NAME INPUT...: with the links that a loader and a linker use
  local file=$1 soname=$2 name=$3
  shift 3
  mkdir -p "${file%/*}"
  clang -shared "${link[@]}" -Wl,-rpath,"\$ORIGIN" -Wl,-soname,"$soname" "$@" -o "$file"
  ln -sf "${file##*/}" "${file%/*}/$soname"
  ln -sf "$soname" "${file%/*}/$name"
}

libc=(-l:libc.so.6)

exblas() { # exblas STAGE SHARD ARCHS UNIT...: links the units in the order given
  local stage=$1 shard=$2 archs=$3 unit objects=()
  shift 3
  hip "$shard" axpy "$archs gfx906"
  hip "$shard" gemm "$archs" --offload-compress
  for unit in "$@"; do objects+=("$work/$unit.o"); done
  start
  library "$stage/lib/libexblas.so.1.2" libexblas.so.1 libexblas.so \
    "$work/start.o" "${objects[@]}" -lamdhip64 "${libc[@]}"
}

program() { # program FILE STAGE SHARD UNIT ARCHS KIND COMPILE_OPTION RUNPATH
  mkdir -p "${1%/*}"
  code=bench hip "$3" "$4" "$5" "$7"
  start -DPROGRAM
  clang "$6" "${link[@]}" -Wl,-rpath,"$8" -Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2 \
    "$work/start.o" "$work/$4.o" -L"$2/lib" -lexblas -lamdhip64 "${libc[@]}" -o "$1"
}

# MessagePack, as far as the kernel database's index needs it.
map() { printf "\\x$(printf %x $((0x80 + $1)))"; }
text() {
  if [ ${#1} -lt 32 ]; then printf "\\x$(printf %x $((0xa0 + ${#1})))%s" "$1"
  else printf "\xd9\\x$(printf %x ${#1})%s" "$1"; fi
}

code_object() { # code_object FILE SHARD UNIT SYMBOL FACTOR ARCH
  clang -x hip -std=c++17 -nogpuinc -nogpulib -cuid="$3" \
    -DSHARD="\"$2\"" -DUNIT="\"$3\"" -DSOLUTION="$4" -DFACTOR="$5" \
    --offload-arch="$6" --offload-device-only --no-gpu-bundle-output solution.hip -o "$1"
  chmod 644 "$1"
}

database() { # database FOLDER SHARD ARCHS
  local folder=$1 shard=$2 arch
  mkdir -p "$folder"
  for arch in $3; do
    code_object "$folder/TensileLibrary_$arch.co" "$shard" tensile Cijk_Ailk_Bljk_SB_MT32x32x8 2.0f "$arch"
    code_object "$folder/TensileLibrary_fallback_$arch.hsaco" "$shard" fallback Cijk_Ailk_Bljk_SB_fallback 3.0f "$arch"
    code_object "$folder/Kernels.so-000-$arch.hsaco" "$shard" kernels Cijk_Ailk_Bljk_SB_GB 4.0f "$arch"
    { map 2; text architecture; text "$arch"; text placeholder; text "TensileLibrary_$arch"; } \
      >"$folder/TensileLibrary_lazy_$arch.dat"
    { map 3; text architecture; text "$arch"
      text codeObjectFile; text "TensileLibrary_$arch.co"
      text kernel; text Cijk_Ailk_Bljk_SB_MT32x32x8; } >"$folder/TensileLibrary_$arch.dat"
  done
  # Names no arch: one file for every shard, and one code object for each arch.
  { map 2; text architecture; text fallback; text kernel; text Cijk_Ailk_Bljk_SB_fallback; } \
    >"$folder/TensileLibrary_fallback.dat"
}

manifest() { # manifest ARTIFACT PREFIX...
  local artifact=$1
  shift
  printf '%s\n' "$@" >"$artifact/artifact_manifest.txt"
}

shard() { # shard NAME FAMILY ARCHS UNIT...
  local name=$1 family=$2 archs=$3
  shift 3
  local root=$out/$name-build
  local blas=$root/blas_lib_$family run=$root/blas_run_$family sparse=$root/host-suite-sparse_lib_generic
  rm -rf "$root"
  local stage=$blas/math-libs/BLAS/rocBLAS/stage
  exblas "$stage" "$name" "$archs" "$@"
  program "$stage/libexec/exblas/exblas-tune" "$stage" "$name" tune "$archs" -no-pie -fno-pic '$ORIGIN/../../lib'
  database "$stage/lib/rocblas/library" "$name" "$archs"
  clang -fPIC -c cblas.c -o "$work/cblas.o"
  library "$blas/math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0" libexcblas.so.1 libexcblas.so \
    "$work/cblas.o" -L"$stage/lib" -lexblas "${libc[@]}"
  # hipBLAS-common is listed and has nothing to ship in this component.
  manifest "$blas" math-libs/BLAS/rocBLAS/stage math-libs/BLAS/hipBLAS/stage math-libs/BLAS/hipBLAS-common/stage
  program "$run/math-libs/BLAS/rocBLAS/stage/bin/exblas-bench" "$stage" "$name" bench "$archs" -pie -fPIE '$ORIGIN/../lib'
  manifest "$run" math-libs/BLAS/rocBLAS/stage
  clang -fPIC -c sparse.c -o "$work/sparse.o"
  library "$sparse/third-party/SuiteSparse/stage/lib/libexsuitesparse.so.7.8" libexsuitesparse.so.7 libexsuitesparse.so \
    "$work/sparse.o" "${libc[@]}"
  manifest "$sparse" third-party/SuiteSparse/stage
}

link_stubs
shard gfx110X gfx110X-dgpu "gfx1100 gfx1101 gfx1102" axpy gemm
# Linked the other way round: wrapper 0 of this library is wrapper 1 of the others.
shard gfx1151 gfx1151 "gfx1151" gemm axpy
shard gfx120X gfx120X-all "gfx1200 gfx1201" axpy gemm
