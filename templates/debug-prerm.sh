# Removes the links to this package's debug files, on upgrade too, or points them to another package's.
debug="${DPKG_ROOT:-}/usr/lib/debug"
for file in "$debug"/{{ package }}/.build-id/*/*.debug; do
  name="${file#"$debug"/{{ package }}/}"
  if [ "$(readlink "$debug/$name")" = "../../{{ package }}/$name" ]; then
    rm -f "$debug/$name"
    for other in "$debug"/*/"$name"; do
      if [ "$other" != "$file" ] && [ -f "$other" ]; then
        ln -sf "../../${other#"$debug"/}" "$debug/$name"
        break
      fi
    done
    rmdir --ignore-fail-on-non-empty "$debug/${name%/*}" "$debug/.build-id"
  fi
done
