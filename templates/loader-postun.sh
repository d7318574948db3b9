# What was written at installation is nobody's to keep.
file={{ file }}
moved='{{ moved }}'
if [ "$1" = 0 ] && [ -f "$file.rpmsave" ]; then
  { read -r one; read -r two; read -r three; } <"$file.rpmsave"
  case "${one:-}|${two:-}|${three:-}" in
    "$moved|/"*'|') rm -f "$file.rpmsave" ;;
  esac
fi
