# If zypper runs one rpm for each package, triggers run after each package, and %posttrans after the last.
is_single=
if [ -n "${ZYPP_IS_RUNNING:-}" ]; then
  is_single=yes comm="/proc/$PPID/comm"
  if [ -r "$comm" ] && read -r parent <"$comm" && [ "$parent" = zypp-rpm ]; then is_single=; fi
fi
[ "$is_single" != '{{ is_single }}' ] || sh '{{ script }}' --check || :
