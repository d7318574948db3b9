# rpm saves the file as if an administrator had edited it. Removes it if %post wrote it.
file={{ file }}
moved='{{ moved }}'
if [ "$1" = 0 ] && [ -f "$file.rpmsave" ]; then
  text=
  last=
  while IFS= read -r line || [ -n "$line" ]; do
    text="$text$line|"
    last="$line"
  done <"$file.rpmsave"
  if [ "$text" = "$moved $last|$last|" ]; then
    rm -f "$file.rpmsave"
  fi
fi
