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
# Earlier versions of several packages have files in this folder, which is a link now. By now dpkg has
# removed them all, because this package breaks these versions. What is left is nobody's.
folder="${DPKG_ROOT:-}"{{ folder.path }}
if [ "$1" = configure ] && [ ! -L "$folder" ]; then
  if [ -d "$folder" ]; then
    find "$folder" -depth -type d -empty -delete
  fi
  if [ -d "$folder" ]; then
    echo "{{ package }}: $folder becomes a link, and what is in it is kept in $folder.dpkg-old" >&2
    mv --backup=numbered -T "$folder" "$folder.dpkg-old"
  fi
  ln -s {{ folder.target }} "$folder"
fi
{% endfor %}
