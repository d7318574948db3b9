# The loader looks where rpm put the packages, with `--prefix` or without. What an administrator
# wrote stays; what an earlier version wrote here begins with a line of its own.
prefix="${RPM_INSTALL_PREFIX:-{{ prefix }}}"
file={{ file }}
moved='{{ moved }}'
[ ! -f "$file" ] || { read -r one; read -r two; read -r three; } <"$file"
case "${one:-}|${two:-}|${three:-}" in
  '{{ prefix }}/{{ libdir }}||')
    if [ "$prefix" != '{{ prefix }}' ]; then
      printf '%s\n' "$moved" "$prefix/{{ libdir }}" >"$file"
    fi
    ;;
  "$moved|/"*'|')
    if [ "$prefix" = '{{ prefix }}' ]; then
      echo "$prefix/{{ libdir }}" >"$file"
    else
      printf '%s\n' "$moved" "$prefix/{{ libdir }}" >"$file"
    fi
    # What rpm put beside it as if somebody had written it.
    rm -f "$file.rpmnew"
    ;;
esac
