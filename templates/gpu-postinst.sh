# Packages of the same installation may follow, so the check waits for its end.
if [ -z "${DPKG_ROOT:-}" ]; then
  case "$1" in
    configure) dpkg-trigger --no-await '{{ watched }}' ;;
    triggered) sh '{{ script }}' --check || true ;;
  esac
fi
