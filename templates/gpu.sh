#!/bin/sh
# Prints the command that installs the packages with code for the GPUs of this machine. rockpack generated it, with
# the table at its end; it gives the same answers as `rockpack gpu`.
#
# It needs only a POSIX shell, writes no files, and runs no programs except dpkg-query or rpm for --check. Texts from
# sysfs are not trusted: they are compared, or checked for digits, but never evaluated or printed.
set -u
export LC_ALL=C
nl='
'

# Prints each message once.
report() {
  case $nl$reported in *"$nl$*$nl"*) return ;; esac
  reported="$reported$*$nl"
  printf '%s: %s\n' "$self" "$*" >&2
}

# Reports why a GPU is skipped; not with --check, which runs after each installation.
skip() {
  [ "$mode" = check ] || report "$*"
}

# Sets `text` to the only line of a file, without trailing blanks.
value() {
  text='' more=''
  { IFS= read -r text; IFS= read -r more; } 2>/dev/null <"$1"
  text=${text%"${text##*[![:space:]]}"}
  [ -n "$text" ] && [ -z "$more" ]
}

# Sets `number` to a decimal number without leading zeros: in arithmetic, 010 is octal.
decimal() {
  number=${1#+}
  case $number in '' | *[!0-9]*) return 1 ;; esac
  number=${number#"${number%%[1-9]*}"} number=${number:-0}
  [ ${#number} -le 18 ]
}

# Sets `hex` to the number in a file, as $2 hexadecimal digits.
hexadecimal() {
  value "$1" || return 1
  case ${text#0x} in "$text" | '' | *[!0-9a-fA-F]* | ?????????*) return 1 ;; esac
  hex=$(printf "%0${2}x" "$text")
  [ ${#hex} -eq "$2" ]
}

# Prints the target for a number of the compute driver: gfx90a for 90010.
name_target() {
  [ ${#1} -le 6 ] || return 1
  major=$(($1 / 10000)) minor=$(($1 / 100 % 100)) stepping=$(($1 % 100))
  [ "$major" -gt 0 ] && [ "$minor" -lt 16 ] && [ "$stepping" -lt 16 ] || return 1
  printf 'gfx%d%x%x' "$major" "$minor" "$stepping"
}

# Prints the target for a version as users write it: gfx90a for 9.0.10.
name_version() {
  case $1 in *.*.*.*) return 1 ;; *.*.*) ;; *) return 1 ;; esac
  version=0
  for part in "${1%%.*}" "${1#*.}" "${1##*.}"; do
    decimal "${part%%.*}" && [ "$number" -le 99 ] || return 1
    version=$((version * 100 + number))
  done
  [ "$version" -lt 640000 ] && name_target "$version"
}

# Sets `used` to the target whose code the runtime loads: `target`, or the one that the environment sets for node $1
# of the compute driver, or for all nodes.
override() {
  used=$target
  for variable in "HSA_OVERRIDE_GFX_VERSION${1:+_$1}" HSA_OVERRIDE_GFX_VERSION; do
    # Only the name is evaluated, which ends in digits or is constant; the value is not.
    eval "is_set=\${$variable+yes} version=\${$variable-}"
    [ -n "$is_set" ] || continue
    used=$(name_version "$version") && return
    used=$target
    skip "$variable is not a GPU version such as 11.0.0"
    return
  done
}

# Adds a node of the compute driver to `nodes`, if it is a GPU: PLACE/TARGET/USED/ID. The partitions of a GPU are
# nodes with the same place.
read_node() {
  is_read='' simd='' version='' location='' domain='' device='' capability=''
  while line='' && IFS= read -r line || [ -n "$line" ]; do
    is_read=yes
    decimal "${line#* }" || continue
    case $line in
      "simd_count "*) simd=${simd:-$number} ;;
      "gfx_target_version "*) version=${version:-$number} ;;
      "location_id "*) location=${location:-$number} ;;
      "domain "*) domain=${domain:-$number} ;;
      "device_id "*) device=${device:-$number} ;;
      "capability "*) capability=${capability:-$number} ;;
    esac
  done 2>/dev/null <"$1/properties"
  # In sysfs, an unreadable file has a size; an empty file has none.
  if [ -z "$is_read" ] && { [ ! -f "$1/properties" ] || [ -s "$1/properties" ]; }; then
    is_hidden=yes
    skip "a node of the compute driver cannot be read, as in a container without access to the GPU"
    return
  fi
  [ "${simd:-0}" != 0 ] && [ "${version:-0}" != 0 ] || return
  if ! target=$(name_target "$version"); then
    skip "a node of the compute driver has the gfx_target_version $version, which is not valid"
    return
  fi
  # Chips of revision 0 have another target.
  [ "$target" != gfx1250 ] || [ $((${capability:-0} >> 22 & 15)) -ne 0 ] || target=gfx1250-strict
  : "${location:=0}"
  place=$(printf '%04x:%02x:%02x' "${domain:-0}" $((location >> 8 & 255)) $((location >> 3 & 31)))
  case " $nodes" in *" $place/$target/"*) return ;; esac
  override "${1##*/}"
  nodes="$nodes$place/$target/$used/$(printf '%04x' "${device:-0}") "
}

# Sets `found` to the target and product of a PCI id with a revision.
device_row() {
  row "i $1:$2" || row "i $1"
}

# Sets `core` to the version of a graphics core, such as 11.0.0.
core() {
  value "$1/major" && core=$text && value "$1/minor" && core=$core.$text && value "$1/revision" && core=$core.$text
}

# Adds a line for a GPU (PLACE/TARGET/USED, PCI id, revision) to `gpus`: TARGET/USED PRODUCT.
add() {
  seen="$seen${1%%/*} " product="GPU 1002:$2"
  ! device_row "$2" "$3" || case $found in *" "*) product=${found#* } ;; esac
  gpus="$gpus${1#*/} $product$nl"
}

# Adds a PCI device, if it is an AMD GPU. The compute driver decides its target, or else the graphics driver.
read_device() {
  hexadecimal "$1/vendor" 4 && [ "$hex" = 1002 ] && hexadecimal "$1/device" 4 || return
  id=$hex revision=
  ! hexadecimal "$1/revision" 2 || revision=$hex
  place=${1##*/}
  for node in $nodes; do
    case $node in "${place%%.*}/"*) add "${node%/*}" "$id" "$revision" && return ;; esac
  done
  if [ -n "$nodes" ] && [ -n "$is_hidden" ]; then
    skip "1002:$id: this container has no access to the GPU"
  elif core "$1/ip_discovery/die/0/GC/0" && row "g $core" || device_row "$id" "$revision"; then
    target=${found%% *}
    override ''
    add "-/$target/$used" "$id" "$revision"
  else
    skip "1002:$id is a GPU that neither the driver nor this script knows"
  fi
}

# Sets `gpus` to the GPUs whose target is known.
read_machine() {
  nodes='' gpus='' seen=' ' is_hidden='' in_windows=''
  topology=$sysfs/class/kfd/kfd/topology/nodes
  for folder in "$topology"/[0-9] "$topology"/[0-9][0-9] "$topology"/[0-9][0-9][0-9]; do
    [ ! -e "$folder" ] || read_node "$folder"
  done
  for folder in "$sysfs"/bus/pci/devices/*; do
    value "$folder/class" || continue
    case $text in
      0x0300* | 0x0380* | 0x1200*) read_device "$folder" ;;
      0x0302*) ! hexadecimal "$folder/vendor" 4 || [ "$hex" != 1414 ] || in_windows=yes ;;
    esac
  done
  for node in $nodes; do
    case $seen in *" ${node%%/*} "*) ;; *) add "${node%/*}" "${node##*/}" '' ;; esac
  done
  case $gpus:$in_windows in
    :yes) skip "WSL2 does not show which GPU the machine has: rocminfo names the target" ;;
    :) [ -n "$reported" ] || skip "no AMD GPU found" ;;
  esac
}

# Runs $1 for each GPU, with `target`, `used` (the target whose code it runs), `name` and `is_card`.
for_gpus() {
  row a
  integrated=" $found "
  while IFS='/ ' read -r target used name; do
    [ -n "$target" ] || continue
    suffix=", taken for $used"
    [ "$used" != "$target" ] || suffix=
    name="$name ($target$suffix)" is_card=yes
    case $integrated in *" $target "*) is_card= ;; esac
    "$1"
  done <<GPUS
$gpus
GPUS
}

# Adds the packages or targets of a GPU to `words`; also for its own target, because the environment may change.
answer() {
  for wanted in "$target" "$used"; do
    found=$wanted
    if [ "$mode" != targets ] && ! row "t $wanted"; then
      report "$name: no package has code for $wanted"
      continue
    fi
    for word in $found; do
      case " $words " in *" $word "*) ;; *) words="${words:+$words }$word" ;; esac
    done
    [ "$mode" != targets ] || continue
    find_unserved "$wanted"
    # shellcheck disable=SC2086
    [ -z "$unserved" ] || report "$name: no package has code of $(some $unserved) for $wanted"
  done
}

# Sets `served` to the row of a target, and `unserved` to the libraries that are not in it. Each three words of the
# row are a library, its kernel package, and the metapackage of the group, or the kernel package again.
find_unserved() {
  row "k $1"
  served=" $found " unserved=''
  row l
  for library in $found; do
    case $served in *" $library "*) ;; *) unserved="$unserved $library" ;; esac
  done
}

# Whether a package is installed or, with a second argument, will be after this run of dpkg.
has() {
  case $states in
    *"$nl$1 installed$nl"* | *"$nl$1 triggers-"*) ;;
    *"$nl$1 unpacked$nl"* | *"$nl$1 half-configured$nl"*) [ $# -eq 2 ] ;;
    *) return 1 ;;
  esac
}

# Sets `has_card` if packages have code for a card.
find_card() {
  [ -z "$is_card" ] || ! row "t $used" || has_card=yes
}

# Reports the installed libraries without code for a GPU.
check() {
  # Nearly every processor has a GPU; next to a card, it needs no code.
  [ -n "$is_card" ] || [ -z "$has_card" ] || return
  case $seen in *" $used "*) return ;; esac
  seen="$seen$used "
  find_unserved "$used"
  # shellcheck disable=SC2016,SC2086
  case $format in
    deb) states=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $libraries $served 2>/dev/null) ;;
    rpm) states=$(rpm -q --qf '%{NAME} installed\n' $libraries $served 2>/dev/null) ;;
  esac
  states=$nl$states$nl lacking='' kernels='' group='' missed=''
  for library in $unserved; do
    ! has "$library" || missed="$missed $library"
  done
  # shellcheck disable=SC2086
  set -- $served
  while [ $# -gt 0 ]; do
    if ! has "$1"; then
      [ "$2" = "$3" ] || group=-
    elif ! has "$2" soon; then
      case "$lacking " in *" $1 "*) ;; *) lacking="$lacking $1" ;; esac
      kernels="$kernels $2"
      [ "${group:=$3}" = "$3" ] || group=-
    fi
    shift 3
  done
  # shellcheck disable=SC2086
  lacking=$(some $lacking) unserved=$(some $missed)
  # Names the metapackage of the group if several libraries lack code, and all that it depends on is needed.
  case $lacking:$group in *:-) ;; *" "*) kernels=" $group" ;; esac
  if [ -n "$lacking" ]; then
    lacking="$lacking${unserved:+, and no package has any for $unserved}"
    report "no GPU code for this machine's $name is installed for $lacking: $manager install$kernels"
  elif [ -n "$unserved" ]; then
    report "no package has GPU code of $unserved for this machine's $name"
  fi
}

# Prints a library, or the number of libraries with the names of three.
some() {
  case $# in
    0 | 1) echo "$*" ;;
    2 | 3) echo "$# libraries ($1, $2${3:+, $3})" ;;
    *) echo "$# libraries ($1, $2, $3 and $(($# - 3)) more)" ;;
  esac
}

refuse() {
  echo "usage: $usage" >&2
  exit 64
}

main() {
  self=${0##*/}
  usage="$self [--targets | --packages | --check] [--for apt|dnf|zypper] [--sysfs DIR]"
  # In packages, the name of the common package is clearer than gpu.sh.
  case $0 in /usr/share/*/gpu.sh) self=${0%/gpu.sh} self=${self##*/} ;; esac
  mode=command manager='' sysfs=/sys reported='' words=''
  while [ $# -gt 0 ]; do
    case $1:$# in
      --targets:* | --packages:* | --check:*) mode=${1#--} ;;
      --help:*) echo "usage: $usage" && exit ;;
      --for:1 | --sysfs:1) refuse ;;
      --for:*) manager=$2 && shift ;;
      --sysfs:*) sysfs=$2 && shift ;;
      *) refuse ;;
    esac
    shift
  done
  row f && format=$found
  case $format:$manager in
    deb: | deb:apt) manager=apt ;;
    rpm:) if found=$(command -v zypper); then manager=zypper; else manager=dnf; fi ;;
    rpm:dnf | rpm:zypper) ;;
    *) refuse ;;
  esac
  # This is a root folder for packages, not a running system.
  if [ ! -c /dev/null ]; then
    skip "there is no /dev/null"
    exit 1
  fi

  read_machine
  if [ "$mode" = check ]; then
    row l || exit 0
    libraries=$found has_card='' seen=' '
    for_gpus find_card
    for_gpus check
    [ -z "$reported" ]
    exit
  fi
  for_gpus answer
  # shellcheck disable=SC2086
  case $words:$mode in
    :*) exit 1 ;;
    *:command) printf '%s\n' "$manager install $words" ;;
    *) printf '%s\n' $words ;;
  esac
}

# Sets `found` to the rest of the first row that begins with $1, or to nothing.
row() {
  while IFS= read -r found; do
    case $found in "$1 "*) found=${found#"$1 "} && return ;; esac
  done <<'TABLE'
@TABLE@
TABLE
  return 1
}

main "$@"
