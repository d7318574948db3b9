{% for change in helped %}
dpkg-maintscript-helper {{ change }} {{ before }} {{ package }} -- "$@"
{% endfor %}
{% for link in links %}
link="${DPKG_ROOT:-}"{{ link }}
if [ -L "$link.dpkg-backup" ]; then
  case "$1" in
    abort-install | abort-upgrade)
      [ -e "$link" ] || [ -L "$link" ] || mv -fT "$link.dpkg-backup" "$link"
      ;;
    purge)
      rm -f "$link.dpkg-backup"
      ;;
  esac
fi
{% endfor %}
