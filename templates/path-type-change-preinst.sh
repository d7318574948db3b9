{% if helped or links %}
# An earlier version has a folder where this one has a link, or a link where this one has a folder;
# dpkg would keep the old one.
{% for change in helped %}
dpkg-maintscript-helper {{ change }} {{ before }} {{ package }} -- "$@"
{% endfor %}
{% for link in links %}
link="${DPKG_ROOT:-}"{{ link }}
case "$1" in
  install | upgrade)
    [ ! -L "$link" ] || mv -fT "$link" "$link.dpkg-backup"
    ;;
esac
{% endfor %}
{% endif %}
