# Names the folder of the libraries, also after `rpm --prefix`, for the dynamic loader. A file that an
# administrator wrote stays. One that this script wrote has the folder in both of its lines.
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
    # rpm takes the file for an administrator's, and creates this one.
    rm -f "$file.rpmnew"
    ;;
esac
