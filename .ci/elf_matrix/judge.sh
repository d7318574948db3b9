# judge.sh NAME RESULTS TREATMENTS FAT HOST: applies every treatment of TREATMENTS (name, tab, shell
# command) to copies of FAT/NAME and HOST/NAME in RESULTS/TREATMENT/{fat,host}. Prints the output of the
# tool and then of every judge behind a line `@@ treatment form judge`. Runs inside of a system; if TOOLS
# names the root of another system, the tools of that one are used.
name=$1 results=$2 treatments=$3 fat=$4 host=$5
stub=${STUB:-/matrix/stub}
tab=$(printf '\t')

say() {
  printf '@@ %s %s %s\n' "$treatment" "$form" "$1"
  shift
  "$@" 2>&1
  echo "status $?"
}

treat() { ${TOOLS:+chroot "$TOOLS"} sh -ec "cd '$PWD'; $command" sh "$name"; }

load() {
  export LD_LIBRARY_PATH="$stub${LIBRARIES:+:$LIBRARIES}"
  case $name in
  *asan*) export LD_PRELOAD="$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 ;;
  esac
  case $name in
  *pie) exec "./$name" ;;
  *) exec "$stub/load" "./$name" ;;
  esac
}

# Complaints alone: all other lines have addresses, which may change.
readable() { readelf -aW "$name" 2>&1 >/dev/null; }
linked() { LD_LIBRARY_PATH="$stub${LIBRARIES:+:$LIBRARIES}" ldd "./$name" | sed 's/ (0x[0-9a-f]*)//'; }
debugged() { gdb -nx -batch -ex 'info line first_launch' -ex 'info functions first_' -ex 'info files' "$name"; }

while IFS=$tab read -r treatment command; do
  for form in fat host; do
    folder=$results/$treatment/$form
    mkdir -p "$folder" && cd "$folder" || exit 1
    eval "cp \"\$$form/\$name\" ." && chmod 755 "$name"
    say treat treat
    say load eval "(load)"
    say lint eu-elflint --gnu-ld "$name"
    say readelf readable
    say ldd linked
    case $treatment in
    none | strip-g | debuglink | eu-strip-f | debugedit) say gdb debugged ;;
    esac
  done
done <"$treatments"
echo '@@ all is said'
