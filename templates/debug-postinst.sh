# Debuggers find a debug file by its build-id. Several packages may have the same file, each in its
# own folder; the path of the build-id is a link to one of them.
debug="${DPKG_ROOT:-}/usr/lib/debug"
for file in "$debug"/{{ package }}/.build-id/*/*.debug; do
  name="${file#"$debug"/{{ package }}/}"
  if [ ! -e "$debug/$name" ]; then
    mkdir -p "${debug}/${name%/*}"
    ln -sf "../../{{ package }}/$name" "$debug/$name"
  fi
done
