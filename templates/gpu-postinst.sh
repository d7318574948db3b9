# The check runs at the end of the installation, because other packages may follow.
if [ -z "${DPKG_ROOT:-}" ]; then
  case "$1" in
    configure) dpkg-trigger --no-await '{{ watched }}' ;;
    triggered) sh '{{ script }}' --check || true ;;
  esac
fi
