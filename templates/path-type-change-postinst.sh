{% for change in helped %}
dpkg-maintscript-helper {{ change }} {{ before }} {{ package }} -- "$@"
{% endfor %}
{% for link in links %}
link="${DPKG_ROOT:-}"{{ link }}
if [ "$1" = configure ] && [ -L "$link.dpkg-backup" ]; then
  rm -f "$link.dpkg-backup"
fi
{% endfor %}
{% for folder in folders %}
# Earlier versions of several packages had files in this folder, which is now a link. dpkg has removed
# these files, because this package breaks those versions. No package owns what is left.
folder="${DPKG_ROOT:-}"{{ folder.path }}
if [ "$1" = configure ] && [ ! -L "$folder" ]; then
  if [ -d "$folder" ]; then
    find "$folder" -depth -type d -empty -delete
  fi
  if [ -d "$folder" ]; then
    echo "{{ package }}: $folder becomes a link; the files left in it are kept in $folder.dpkg-old" >&2
    mv --backup=numbered -T "$folder" "$folder.dpkg-old"
  fi
  ln -s {{ folder.target }} "$folder"
fi
{% endfor %}
