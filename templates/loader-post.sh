# The loader looks where rpm put the packages, with `--prefix` or without. What an administrator
# wrote stays; what an earlier version wrote here says its folder in both of its lines.
prefix="${RPM_INSTALL_PREFIX:-{{ prefix }}}"
file={{ file }}
moved='{{ moved }}'
packaged='{{ prefix }}/{{ libdir }}'
folder="$prefix/{{ libdir }}"
text=
last=
if [ -f "$file" ]; then
  while IFS= read -r line || [ -n "$line" ]; do
    text="$text$line|"
    last="$line"
  done <"$file"
fi
case "$text" in
  "$packaged|")
    if [ "$folder" != "$packaged" ]; then
      printf '%s\n' "$moved $folder" "$folder" >"$file"
    fi
    ;;
  "$moved $last|$last|")
    if [ "$folder" = "$packaged" ]; then
      echo "$folder" >"$file"
    else
      printf '%s\n' "$moved $folder" "$folder" >"$file"
    fi
    # What rpm put beside it as if somebody had written it.
    rm -f "$file.rpmnew"
    ;;
esac
