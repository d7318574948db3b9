# {{ link }} is a link to one of the installed series: the one that the administrator named in {{ choice }}, or
# else the highest. Packages of every series run this script. It may run at any time.
link={{ root }}'{{ link }}'
name='{{ name }}'
choice={{ root }}'{{ choice }}'
chosen=
series=
if [ -f "$choice" ]; then
  chosen="$(cat "$choice")" || :
fi
for folder in "$link"-*.*; do
  found="${folder#"$link-"}"
  case "$found" in
    *[!0-9.]* | *.*.* | .* | *.) continue ;;
  esac
  if [ ! -f "$folder/{{ marker }}" ]; then
    continue
  fi
  if [ "$found" = "$chosen" ]; then
    series="$found"
    break
  fi
  if [ -z "$series" ] || [ "${found%.*}" -gt "${series%.*}" ] ||
    { [ "${found%.*}" -eq "${series%.*}" ] && [ "${found#*.}" -gt "${series#*.}" ]; }; then
    series="$found"
  fi
done
# A link to a series is ours, also with an absolute target. Nothing else is changed.
target="$(readlink "$link")" || target=
found="${target#'{{ folder }}/'}"
case "${found#"$name-"}" in
  "$found" | *[!0-9.]* | *.*.* | .* | *.) is_own= ;;
  *.*) is_own=yes ;;
  *) is_own= ;;
esac
if [ -z "$is_own" ] && { [ -e "$link" ] || [ -L "$link" ]; }; then
  if [ -n "$series" ]; then
    echo "{{ package }}: $link is left unchanged, because no package made it; it should be a link to $name-$series" >&2
  fi
elif [ -z "$series" ]; then
  rm -f "$link"
elif [ "$target" != "$name-$series" ]; then
  # The old link stays until the new one replaces it.
  ln -sfT "$name-$series" "$link.new"
  mv -fT "$link.new" "$link"
fi
